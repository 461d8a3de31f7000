import HTTPTransfer
import HTTPTransferCore
import TransferDisplay

/// The state of all files of a run.
///
/// A file that waits or has ended consists only of its display item; a transfer exists only while
/// it runs. Only the main thread uses the board.
struct TransferBoard {
  /// The display item of each file, in the order in which they were given.
  private(set) var items: [DisplayItem]
  /// The state of each file; `items` has less detail.
  private(set) var states: [TransferProgress.State]
  /// Why files have failed.
  private(set) var reasons: [Int: String] = [:]
  /// Why they have failed, as exit codes.
  private(set) var exits: Set<TransferExit> = []
  /// The files that have failed, in the order of their failures.
  private var failed: [Int] = []
  /// The sums over the files that have ended.
  private var settled = DisplayTotals()
  /// The files that have ended since the last snapshot; nil before the first.
  private var changed: [Int]?
  /// Increases with each change of `states`.
  private(set) var changeCount = 0

  private let isUpload: Bool
  private let nameSources: [NameSource]
  private var backlog: TransferBacklog
  private var transfers: [Int: Transfer] = [:]

  init(_ jobs: [TransferRun.Job], isUpload: Bool, maximumPerHost: Int?) {
    self.isUpload = isUpload
    items = jobs.enumerated().map { index, job in
      DisplayItem(id: index, name: job.name, url: job.url)
    }
    states = Array(repeating: .queued, count: jobs.count)
    nameSources = jobs.map(\.nameSource)
    backlog = TransferBacklog(
      hosts: jobs.map(\.host), maximumPerHost: maximumPerHost)
    for (index, job) in jobs.enumerated() {
      if let failure = job.failure { fail(index, failure) }
    }
  }

  private mutating func fail(_ index: Int, _ failure: JobFailure) {
    items[index].state = .failed(failure.reason)
    items[index].errorCode = failure.code.rawValue
    items[index].httpStatus = failure.status
    states[index] = .failed
    reasons[index] = failure.reason
    exits.insert(TransferExit(failure.code, status: failure.status))
    settle(index)
  }

  /// Counts a file that has ended.
  private mutating func settle(_ index: Int) {
    settled.add(items[index])
    if states[index] == .failed { failed.append(index) }
  }

  var failedCount: Int { failed.count }

  /// All files now; the next snapshot tells what has changed since.
  mutating func takeSnapshot(elapsed: Double) -> DisplaySnapshot {
    var totals = settled
    for index in transfers.keys { totals.add(items[index]) }
    totals.addQueued(items.count - totals.itemCount)
    let changing = changed.map { ($0 + transfers.keys).sorted() } ?? Array(items.indices)
    changed = []
    return DisplaySnapshot(
      items: items, changing: changing, failed: failed, totals: totals, elapsed: elapsed,
      isUpload: isUpload)
  }

  /// Whether everything has ended.
  var isFinished: Bool { backlog.isEmpty && transfers.isEmpty }

  /// The files that should become transfers now.
  mutating func begin() -> [Int] {
    var runnable: [Int] = []
    while true {
      let begun = backlog.begin()
      runnable += begun.filter { states[$0] != .failed }
      // Files that have failed beforehand make room for others at once.
      let ended = begun.filter { states[$0] == .failed }
      if ended.isEmpty { return runnable }
      for index in ended { backlog.end(index) }
    }
  }

  /// Records the transfer of a file.
  mutating func add(_ transfer: Transfer, of index: Int) { transfers[index] = transfer }

  /// Counts waiting files as cancelled.
  mutating func giveUp() {
    for index in backlog.giveUp() where states[index] != .failed { cancel(index) }
  }

  private mutating func cancel(_ index: Int) {
    items[index].state = .cancelled
    states[index] = .cancelled
    changeCount += 1
    settle(index)
    changed?.append(index)
  }

  /// Counts all unfinished files as cancelled, because the process ends without them.
  mutating func abandon() {
    giveUp()
    for index in transfers.keys { cancel(index) }
    transfers = [:]
  }

  /// Updates the running transfers, and removes those that have ended.
  ///
  /// - Returns: whether any has ended.
  mutating func look() -> Bool {
    var ended: [Int] = []
    for (index, transfer) in transfers {
      let progress = transfer.progress
      items[index] = DisplayItem(
        items[index], transfer, progress, isUpload: isUpload, nameSource: nameSources[index])
      if states[index] != progress.state {
        states[index] = progress.state
        changeCount += 1
      }
      guard progress.state.isFinal else { continue }
      ended.append(index)
      if progress.state == .failed {
        reasons[index] = progress.reason
        exits.insert(transfer.error.map(TransferExit.init) ?? .several)
      }
    }
    for index in ended {
      settle(index)
      changed?.append(index)
      transfers[index] = nil
      backlog.end(index)
    }
    return !ended.isEmpty
  }
}

extension Transfer {
  /// The error that ended it; nil if none did.
  fileprivate var error: TransferError? {
    if case .failure(let error)? = outcome { error } else { nil }
  }

  /// Whether it found its file unchanged and kept it.
  fileprivate var isUnchanged: Bool {
    if case .success(let result)? = outcome { result.isUnchanged } else { false }
  }
}

extension DisplayItem {
  /// The display item of a transfer of the same file as `item`.
  fileprivate init(
    _ item: DisplayItem, _ transfer: Transfer, _ progress: TransferProgress, isUpload: Bool,
    nameSource: NameSource
  ) {
    let state: State =
      switch progress.state {
      case .queued: .queued
      case .connecting: .connecting
      case .running, .finishing: .running
      case .waiting: .waiting(reason: progress.reason ?? "")
      case .paused: .paused
      case .finished: .finished
      case .failed:
        .failed((progress.reason ?? "") + Self.remedy(of: transfer, isUpload, nameSource))
      case .cancelled: .cancelled
      }
    self.init(
      id: item.id, name: item.name, url: item.url, state: state,
      transferredByteCount: isUpload ? progress.sentByteCount : progress.receivedByteCount,
      resumedByteCount: progress.resumedByteCount,
      totalByteCount: isUpload ? progress.bodyByteCount : progress.totalByteCount,
      bytesPerSecond: progress.bytesPerSecond,
      timeLeft: progress.estimatedTimeLeft.map { $0 / .seconds(1) },
      elapsed: progress.elapsed / .seconds(1), connections: progress.connections)
    isUnchanged = state == .finished && transfer.isUnchanged
    if !transfer.request.mirrors.isEmpty { mirror = transfer.server?.redacted }
    errorCode = transfer.error?.code.rawValue
    httpStatus = transfer.error?.status
  }

  /// What helps after the failure of a transfer.
  private static func remedy(
    of transfer: Transfer, _ isUpload: Bool, _ nameSource: NameSource
  ) -> String {
    guard let error = transfer.error else { return "" }
    if let remedy = nameSource.remedy(after: error) { return remedy }
    guard error.code == .destinationExists else { return FailureRemedy.ending(error.remedy) }
    return isUpload
      ? ": use --overwrite to replace it, or -o to name another file"
      : ": use --overwrite to replace it, --skip-existing to leave it, or -o to name another place"
  }
}
