internal import Dispatch
internal import Glibc
internal import HTTPTransfer
internal import Logging

/// Ends a mount: ends its requests, answers reads as far as possible, and commits stored bytes.
///
/// Every wait here has a time limit: work left undone only makes the next mount verify some bytes
/// again, while a process that does not end keeps the cache locked.
struct MountEnd: Sendable {
  let context: MountContext
  let clock: DeadlineClock
  let checkpoints: CheckpointScheduler
  let firstBytes: FirstBytes
  let connectionCounts: ConnectionCounts
  /// Marks the entries that were used.
  let markUsed: @Sendable () -> Void

  /// How long the first bytes of files that their servers have described may still take.
  ///
  /// The cache records a description only together with bytes. Without them the next mount asks the
  /// server again, even for what a reader has seen.
  private static let firstBytesTimeout = Duration.milliseconds(500)

  /// How long transfers may take to end; cancelled ones end at once.
  private static let cancellationTimeout = Duration.milliseconds(500)

  /// How long commands accepted over `.control` may still take.
  private static let backgroundTimeout = Duration.milliseconds(500)

  /// Ends the mount, on a thread that may wait; returns when all is done or has taken too long.
  func run() {
    wait(for: Self.firstBytesTimeout) { !firstBytes.areAwaited }
    context.client.cancelAll()
    wait(for: Self.cancellationTimeout) { context.client.activeExchangeCount == 0 }
    // Commands that were accepted, such as pins, are carried out.
    _ = context.backgroundQueue.isDone(within: Self.backgroundTimeout)
    checkpoints.end()
    // The disk may be slow, but the process must end.
    let isStored = DispatchQueue(label: "httpfs.end").isDone(
      within: FileSettings.checkpointTimeout
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

  /// How long commits may be started, and then syncs of records and stamps.
  ///
  /// Each file that was accessed for the first time takes about five syncs, so thousands of them
  /// would keep the process running for many seconds.
  private static let beginTimeout = Duration.milliseconds(700)

  /// Commits stored bytes, the versions with the most bytes first, and stamps complete files.
  ///
  /// It starts no more of them after the time limit. The next mount syncs and verifies uncommitted
  /// bytes, which takes the least time if they are of few files. So all data comes before the
  /// records: a COMMIT that is not on the disk is lost only with the power.
  private func commitEverything() {
    let watched = clock.checkpointed.map { (version: $0, byteCount: $0.uncommittedByteCount) }
      .sorted { $0.byteCount > $1.byteCount }
      .map(\.version)
    let timeout = ContinuousClock.now + FileSettings.checkpointTimeout
    let commits = ContinuousClock.now + Self.beginTimeout
    var committed: [any Checkpointed] = []
    for version in watched where ContinuousClock.now < commits {
      version.finishCheckpoints(until: timeout)
      context.storage.finish {
        if version.commitFinally() { committed.append(version) }
      }
    }
    let stamps = ContinuousClock.now + Self.beginTimeout
    for version in committed where ContinuousClock.now < stamps {
      version.syncRecordFinally()
    }
    for version in watched where ContinuousClock.now < stamps {
      version.finishCheckpoints(until: timeout)
      context.storage.finish { version.stampFinally() }
    }
  }
}

extension DispatchQueue {
  /// Runs `work` after all earlier work of the queue.
  ///
  /// - Returns: whether all of it ended within `limit`.
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
