/// A remote file of the model: the history of its versions and of its faults.
///
/// Times are seconds since the run's start. A version counts as visible from before the Origin got
/// it until after the Origin got the next.
struct ModelFile {
  /// A period in which the file had one version.
  struct Epoch {
    let version: UInt64
    let start: Double
    var end = Double.infinity
  }

  /// A period in which the server failed.
  struct Fault {
    let kind: ModelFault
    let start: Double
    var end = Double.infinity
  }

  let name: String
  let seed: UInt64
  private let firstLength: Int64
  private(set) var epochs: [Epoch]
  private(set) var faults: [Fault] = []

  /// The periods in which the file was in the list of the mount; the last one may be open.
  private(set) var listings: [(start: Double, end: Double)] = [(0, .infinity)]

  init(name: String, seed: UInt64, firstLength: Int64) {
    self.name = name
    self.seed = seed
    self.firstLength = firstLength
    epochs = [Epoch(version: 1, start: 0)]
  }

  var path: String { "/data/\(name)" }

  /// The version that the server has now.
  var version: UInt64 { epochs[epochs.count - 1].version }

  /// The length of a version: all lengths differ, so `fstat` identifies the version.
  func length(of version: UInt64) -> Int64 { firstLength + Int64(version) * 4099 }

  /// The version of a length; nil if no version had it.
  func version(ofLength length: Int64) -> UInt64? {
    epochs.map(\.version).first { self.length(of: $0) == length }
  }

  // MARK: What happens

  mutating func change(to version: UInt64, from start: Double, until end: Double) {
    epochs[epochs.count - 1].end = end
    epochs.append(Epoch(version: version, start: start))
  }

  mutating func fail(_ kind: ModelFault, from start: Double) {
    faults.append(Fault(kind: kind, start: start))
  }

  /// Ends all faults except `offline`, or only those of `kind`.
  mutating func heal(until end: Double, only kind: ModelFault? = nil) {
    for index in faults.indices where faults[index].end == .infinity {
      if kind == nil ? faults[index].kind != .offline : faults[index].kind == kind {
        faults[index].end = end
      }
    }
  }

  mutating func list(_ isListed: Bool, from start: Double, until end: Double) {
    if isListed, !isListedNow {
      listings.append((start, .infinity))
    } else if !isListed, isListedNow {
      listings[listings.count - 1].end = end
    }
  }

  var isListedNow: Bool { listings.last?.end == .infinity }

  // MARK: What may be seen

  /// Whether the file was in the list all the time of `period`.
  func isListed(always period: ClosedRange<Double>) -> Bool {
    listings.contains { $0.start <= period.lowerBound && $0.end >= period.upperBound }
  }

  /// Whether the file was in the list at some time of `period`.
  func isListed(ever period: ClosedRange<Double>) -> Bool {
    listings.contains { $0.start <= period.upperBound && $0.end >= period.lowerBound }
  }

  /// The indices of the epochs that a client may have seen in `period`.
  func visibleEpochs(in period: ClosedRange<Double>) -> [Int] {
    epochs.indices.filter {
      epochs[$0].start <= period.upperBound && epochs[$0].end >= period.lowerBound
    }
  }

  /// The faults that may have an effect in `period`: each has an effect for a while after its end.
  func faults(felt period: ClosedRange<Double>, memory: (ModelFault) -> Double) -> [ModelFault] {
    faults.filter {
      $0.start <= period.upperBound && $0.end + memory($0.kind) >= period.lowerBound
    }.map(\.kind)
  }

  /// Whether the server has had another version by `time`, since `version` first appeared.
  func hasChanged(from version: UInt64, by time: Double) -> Bool {
    guard let first = epochs.firstIndex(where: { $0.version == version }) else { return true }
    return epochs[first...].contains { $0.version != version && $0.start <= time }
  }
}
