import MountControl
package import MountStatus

/// The live view of a mount: what it shows of the last report, which file is selected, and what the
/// keys mean at the moment.
///
/// A value without any terminal: it takes reports and keys, and gives screens and actions.
package struct StatusView: Sendable {
  /// What the keys are about.
  enum Mode: Sendable, Equatable {
    case files
    case help
    /// A part of names is typed; the filter that was there before comes back with Escape.
    case filter(before: String)
    /// Whether to evict the file of this name.
    case eviction(name: String)
    /// A value is typed.
    case question(Question, answer: String)
  }

  /// What can be asked for with a value.
  enum Question: Sendable, Equatable {
    case connections
    case rateLimit
  }

  /// What came of a key, or of a command.
  struct Notice: Sendable, Equatable {
    var text: String
    var isFailure = false
  }

  /// The mount point, as the user has named it.
  let mountpoint: String

  private(set) var report: StatusReport?

  /// How many files are in each state.
  private(set) var stateCounts: [FileState: Int] = [:]

  /// The time until the last file that moves is complete, in seconds.
  private(set) var secondsLeft: Double?

  /// The positions in the report of the files that are shown, in their order.
  private(set) var shown: [Int] = []

  var selection = FileSelection() {
    didSet { if selection != oldValue { arrange() } }
  }

  /// The selected file's position in ``shown``; 0 where nothing is shown.
  private(set) var selectedRow = 0

  /// The name of the selected file; nil while nobody has moved: then it is whatever comes first.
  private var selectedName: String?

  /// The first row of ``shown`` that is visible, and how many are: as the last screen had it.
  var firstVisibleRow = 0
  var visibleRowCount = 1

  var mode = Mode.files
  var showsDetails = true
  var notice: Notice?

  /// The files that were paused from here: a file that is read all the same shows another state.
  var pausedNames: Set<String> = []

  /// How long the mount has left the last question without an answer, in seconds; nil while it
  /// answers.
  package var unansweredSeconds: Int?

  /// Why the last answer cannot be used, in one line; nil where it can.
  package var failure: String?

  package init(mountpoint: String) { self.mountpoint = mountpoint }

  /// Shows this report from now on.
  package mutating func take(_ report: StatusReport) {
    self.report = report
    stateCounts = report.files.reduce(into: [:]) { $0[$1.state, default: 0] += 1 }
    // Files are fetched side by side: the last one to end decides.
    secondsLeft = report.files.lazy.compactMap(\.etaSeconds).max()
    arrange()
  }

  /// The selected file; nil where none is shown.
  var selectedFile: FileStatus? {
    guard let report, shown.indices.contains(selectedRow) else { return nil }
    return report.files[shown[selectedRow]]
  }

  /// Says what comes of a command: `failure` is why it was not done, nil where it was.
  package mutating func finish(_ request: ControlRequest, failure: String?) {
    if let failure {
      notice = Notice(text: failure, isFailure: true)
      return
    }
    switch request {
    case .file(.pause, let name?): pausedNames.insert(name)
    case .file(.resume, let name?): pausedNames.remove(name)
    case .file(.resume, nil): pausedNames = []
    default: break
    }
    notice = Notice(text: "\(request.description): accepted")
  }

  /// Takes away what was said of a command, some time after it was said.
  package mutating func clearNotice() { notice = nil }

  // MARK: - Selection

  /// Selects the row that is `count` rows below (above, where negative), as far as there are rows.
  mutating func move(by count: Int) {
    select(row: selectedRow + count)
  }

  mutating func select(row: Int) {
    selectedRow = min(max(0, row), max(0, shown.count - 1))
    selectedName = selectedFile?.name
  }

  /// Selects what comes first, whichever that is from now on.
  mutating func selectFirst() {
    selectedRow = 0
    selectedName = nil
  }

  /// Orders the files anew; the selected one stays selected where it is still shown, else its row.
  private mutating func arrange() {
    guard let report else { return }
    shown = selection.indices(of: report.files)
    if let selectedName,
      let row = shown.firstIndex(where: { report.files[$0].name == selectedName })
    {
      selectedRow = row
    } else {
      selectedRow = min(selectedRow, max(0, shown.count - 1))
      if selectedName != nil { selectedName = selectedFile?.name }
    }
  }
}
