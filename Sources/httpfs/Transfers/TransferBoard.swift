import HTTPTransfer
import TransferDisplay

/// How all files of a run stand.
///
/// A file that waits or has ended is only what is shown of it; a transfer exists while one is under
/// way. The main thread alone uses it.
struct TransferBoard {
  /// What is shown of each file, in the order in which they were given.
  private(set) var items: [DisplayItem]
  /// Where each is in its life; `items` tells less of it.
  private(set) var states: [TransferProgress.State]
  /// Why some have failed.
  private(set) var reasons: [Int: String] = [:]
  /// How many have failed because a file is there that they may not replace.
  private(set) var existingCount = 0
  private(set) var failedCount = 0
  /// Grows with each change of `states`.
  private(set) var changeCount = 0

  private let isUpload: Bool
  private var backlog: TransferBacklog
  private var transfers: [Int: Transfer] = [:]

  init(_ jobs: [TransferRun.Job], isUpload: Bool, maximumPerHost: Int?) {
    self.isUpload = isUpload
    items = jobs.enumerated().map { index, job in
      DisplayItem(id: index, name: job.name, url: job.url)
    }
    states = Array(repeating: .queued, count: jobs.count)
    backlog = TransferBacklog(
      hosts: jobs.map(\.host), maximumPerHost: maximumPerHost)
  }

  /// Whether everything has ended.
  var isFinished: Bool { backlog.isEmpty && transfers.isEmpty }

  /// The files that are to become transfers now.
  mutating func begin() -> [Int] { backlog.begin() }

  /// Takes note of the transfer that a file has become.
  mutating func add(_ transfer: Transfer, of index: Int) { transfers[index] = transfer }

  /// Has what waits count as cancelled.
  mutating func giveUp() {
    for index in backlog.giveUp() {
      items[index].state = .cancelled
      states[index] = .cancelled
      changeCount += 1
    }
  }

  /// Has all that has not ended count as cancelled: the process ends without it.
  mutating func abandon() {
    giveUp()
    for index in transfers.keys {
      items[index].state = .cancelled
      states[index] = .cancelled
      changeCount += 1
    }
    transfers = [:]
  }

  /// Looks at what is under way, and forgets the transfers that have ended.
  ///
  /// - Returns: whether some have.
  mutating func look() -> Bool {
    var ended: [Int] = []
    for (index, transfer) in transfers {
      let progress = transfer.progress
      items[index] = DisplayItem(items[index], transfer, progress, isUpload: isUpload)
      if states[index] != progress.state {
        states[index] = progress.state
        changeCount += 1
      }
      guard progress.state.isFinal else { continue }
      ended.append(index)
      if progress.state == .failed {
        failedCount += 1
        reasons[index] = progress.reason
        if transfer.errorCode == .destinationExists { existingCount += 1 }
      }
    }
    for index in ended {
      transfers[index] = nil
      backlog.end(index)
    }
    return !ended.isEmpty
  }
}

extension Transfer {
  /// What kind of failure has ended it; nil where none has.
  fileprivate var errorCode: TransferError.Code? {
    if case .failure(let error)? = outcome { error.code } else { nil }
  }

  /// Whether it has found its file as it was, and left it.
  fileprivate var isUnchanged: Bool {
    if case .success(let result)? = outcome { result.isUnchanged } else { false }
  }
}

extension DisplayItem {
  /// What the display shows of a transfer of the same file as `item`.
  fileprivate init(
    _ item: DisplayItem, _ transfer: Transfer, _ progress: TransferProgress, isUpload: Bool
  ) {
    let state: State =
      switch progress.state {
      case .queued: .queued
      case .connecting: .connecting
      case .running, .finishing: .running
      case .waiting: .waiting(reason: progress.reason ?? "")
      case .paused: .paused
      case .finished: .finished
      case .failed: .failed((progress.reason ?? "") + Self.remedy(of: transfer, isUpload))
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
  }

  /// The options that help where a file is in the way.
  private static func remedy(of transfer: Transfer, _ isUpload: Bool) -> String {
    guard transfer.errorCode == .destinationExists else { return "" }
    return isUpload
      ? ": use --overwrite to replace it, or -o to name another file"
      : ": use --overwrite to replace it, --skip-existing to leave it, or -o to name another place"
  }
}
