import MountControl
package import MountStatus

/// The live view of a mount: the last report, the selected file, and the current meaning of the
/// keys.
///
/// It is a value without a terminal: it takes reports and keys, and returns screens and actions.
package struct StatusView: Sendable {
  /// What the keys act on.
  enum Mode: Sendable, Equatable {
    case files
    case help
    /// The user types a part of names; Escape restores the previous filter.
    case filter(before: String)
    /// The user must confirm the eviction of the file with this name.
    case eviction(name: String)
    /// The user types a value.
    case question(Question, answer: String)
  }

  /// A request that needs a value.
  enum Question: Sendable, Equatable {
    case connections
    case rateLimit
  }

  /// The result of a key or a command.
  struct Notice: Sendable, Equatable {
    var text: String
    var isFailure = false
  }

  /// The mount point, as the user named it.
  let mountpoint: String

  private(set) var report: StatusReport?

  /// The sums over the files of ``report``; the widths of names are left out.
  private(set) var sums = StatusSums()

  /// The indices in the report of the files that are shown, in order.
  private(set) var shown: [Int] = []

  var selection = FileSelection() {
    didSet { if selection != oldValue { arrange() } }
  }

  /// The selected file's position in ``shown``; 0 if nothing is shown.
  private(set) var selectedRow = 0

  /// The name of the selected file; nil until the user moves the selection: the first file is then
  /// selected.
  private var selectedName: String?

  /// The first visible row of ``shown`` and the number of visible rows on the last screen.
  var firstVisibleRow = 0
  var visibleRowCount = 1

  var mode = Mode.files
  var showsDetails = true
  var notice: Notice?

  /// The files that this view paused: a paused file that is being read shows another state.
  var pausedNames: Set<String> = []

  /// How long the mount has not answered the last request, in seconds; nil while it answers.
  package var unansweredSeconds: Int?

  /// Why the last answer cannot be used, in one line; nil if it can.
  package var failure: String?

  package init(mountpoint: String) { self.mountpoint = mountpoint }

  /// Shows this report from now on.
  package mutating func take(_ report: StatusReport) {
    self.report = report
    sums = report.files.reduce(into: StatusSums()) { $0.add($1) }
    arrange()
  }

  /// The selected file; nil if none is shown.
  var selectedFile: FileStatus? {
    guard let report, shown.indices.contains(selectedRow) else { return nil }
    return report.files[shown[selectedRow]]
  }

  /// Shows the result of a command: `failure` is why it failed, nil on success.
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

  /// Removes the notice some time after it was shown.
  package mutating func clearNotice() { notice = nil }

  // MARK: - Selection

  /// Moves the selection down by `count` rows (up if negative), at most to the end of the table.
  mutating func move(by count: Int) {
    select(row: selectedRow + count)
  }

  mutating func select(row: Int) {
    selectedRow = min(max(0, row), max(0, shown.count - 1))
    selectedName = selectedFile?.name
  }

  /// Selects the first row, and keeps selecting whatever is first.
  mutating func selectFirst() {
    selectedRow = 0
    selectedName = nil
  }

  /// Orders the files again; keeps the selected file if it is still shown, otherwise its row.
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
