internal import Dispatch
internal import Glibc
internal import HTTPTransfer
internal import Logging

/// The end of a mount: ends what runs, answers what can be answered, and commits what is stored.
///
/// Every wait here has a time limit: work left undone only makes the next mount verify some bytes
/// again, while a process that does not end keeps the cache locked.
struct MountEnd: Sendable {
  let context: MountContext
  let clock: DeadlineClock
  let firstBytes: FirstBytes
  let connectionCounts: ConnectionCounts
  /// Marks the entries that were used.
  let markUsed: @Sendable () -> Void

  /// How long the first bytes of files that their servers have described may still take.
  ///
  /// The cache records a description only together with bytes. Without them the next mount asks the
  /// server again, even for what a reader has seen.
  private static let firstBytesPatience = Duration.milliseconds(500)

  /// How long transfers may take to end; cancelled ones end at once.
  private static let cancellationPatience = Duration.milliseconds(500)

  /// How long commands accepted over `.control`, and a reload of the list, may still take.
  private static let backgroundPatience = Duration.milliseconds(500)

  /// Returns when all of it is done, or has taken too long; for a thread that may wait.
  func run() {
    wait(for: Self.firstBytesPatience) { !firstBytes.areAwaited }
    context.client.cancelAll()
    wait(for: Self.cancellationPatience) { context.client.activeExchangeCount == 0 }
    // What has been accepted is done, such as pins.
    _ = context.backgroundQueue.isDone(within: Self.backgroundPatience)
    // The disk may be slow, but the process must end.
    let isStored = DispatchQueue(label: "httpfs.end").isDone(
      within: FileSettings.checkpointPatience
    ) {
      context.storage.finish()
      context.replyQueue.sync {}
      context.cachedReplyQueue.sync {}
      connectionCounts.store()
      commitEverything()
      markUsed()
    }
    if !isStored {
      context.logger.warning(
        "the disk of the cache is slow: what it has not synced is verified later")
    }
  }

  private func wait(for limit: Duration, until isDone: () -> Bool) {
    let deadline = ContinuousClock.now + limit
    while !isDone(), ContinuousClock.now < deadline { usleep(10_000) }
  }

  /// For how long commits are begun, and then stamps.
  ///
  /// Each takes some five syncs: thousands of files that were looked at for the first time would keep the
  /// process for many seconds.
  private static let beginPatience = Duration.milliseconds(700)

  /// Commits what is stored, the most bytes first, and stamps what is complete, and waits until it is on
  /// disk; begins nothing more when the time for that is over.
  ///
  /// What is not committed is verified by the next mount: least of all where there are few bytes.
  private func commitEverything() {
    let watched = clock.versions.map {
      (version: $0, byteCount: $0.checkpoints.uncommittedByteCount)
    }
    .sorted { $0.byteCount > $1.byteCount }
    .map(\.version)
    let patience = ContinuousClock.now + FileSettings.checkpointPatience
    let commits = ContinuousClock.now + Self.beginPatience
    for version in watched where ContinuousClock.now < commits {
      version.checkpoints.finishCheckpoints(until: patience)
      context.storage.finish { version.checkpoints.commitFinally() }
    }
    let stamps = ContinuousClock.now + Self.beginPatience
    for version in watched where ContinuousClock.now < stamps {
      version.checkpoints.finishCheckpoints(until: patience)
      context.storage.finish { version.checkpoints.stampFinally() }
    }
  }
}

extension DispatchQueue {
  /// Runs `work` after what was handed over before.
  ///
  /// - Returns: whether all of it has ended within `limit`.
  fileprivate func isDone(
    within limit: Duration, _ work: @escaping @Sendable () -> Void = {}
  ) -> Bool {
    let done = DispatchSemaphore(value: 0)
    async {
      work()
      done.signal()
    }
    let milliseconds = max(50, Int(limit / .milliseconds(1)))
    return done.wait(timeout: .now() + .milliseconds(milliseconds)) == .success
  }
}
