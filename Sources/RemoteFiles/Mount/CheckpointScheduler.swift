internal import Dispatch
internal import HTTPTransfer
internal import RangeCache
internal import Synchronization

/// The cached bytes of a version, which a checkpoint protects from a loss of power.
protocol Checkpointed: Sendable {
  /// The data that the steps of one checkpoint pass on.
  associatedtype CheckpointTicket: Sendable

  /// Begins a checkpoint if there are uncommitted bytes and the last one began `interval` ago.
  ///
  /// The first checkpoint of all bytes of a file need not wait for that.
  func beginCheckpoint(now: ContinuousClock.Instant, interval: Duration) -> CheckpointTicket?

  /// Waits until the data is on disk; nil if that failed.
  func syncData(_ ticket: CheckpointTicket) -> Checkpoint?

  /// Appends the COMMIT; runs on the storage queue.
  func commit(_ ticket: CheckpointTicket, _ checkpoint: Checkpoint)

  /// Waits until the record is on disk.
  func finishCheckpoint(_ ticket: CheckpointTicket)

  /// Ends a checkpoint that has failed.
  func endCheckpoint()

  /// Queues a stamp if the file is complete.
  func stampSoon()

  // MARK: Shutdown

  var uncommittedByteCount: Int64 { get }

  /// Waits for the running checkpoint, if there is one.
  func finishCheckpoints(until deadline: ContinuousClock.Instant)

  /// Syncs the data and appends the COMMIT of all uncommitted bytes.
  ///
  /// - Returns: whether there were any.
  func commitFinally() -> Bool

  /// Waits until the COMMIT is on the disk.
  func syncRecordFinally()

  /// Stamps it if it is complete.
  func stampFinally()
}

/// Commits stored bytes that are old enough.
///
/// A checkpoint has three steps: `fdatasync` of the data on the disk queue; the COMMIT on the
/// storage queue, the only one that appends to records; and `fdatasync` of the record on the disk
/// queue.
final class CheckpointScheduler: Sendable {
  /// How old uncommitted bytes may become, whatever their number.
  ///
  /// After a loss of power they must be fetched again, which costs time; but a sync delays readers
  /// that wait.
  private static let interval = Duration.seconds(2)

  private let context: MountContext
  private let afterwards: @Sendable () -> Void
  private let isEnding = Atomic<Bool>(false)

  /// Creates a scheduler.
  ///
  /// - Parameters:
  ///   - context: has the queues.
  ///   - afterwards: runs after each checkpoint, on the disk queue.
  init(context: MountContext, afterwards: @escaping @Sendable () -> Void) {
    self.context = context
    self.afterwards = afterwards
  }

  /// Starts a checkpoint of `version` if uncommitted data is old enough.
  func checkpointIfDue(_ version: some Checkpointed, now: ContinuousClock.Instant) {
    // One that is dropped must not begin, or the end of the mount would wait for it.
    guard !isEnding.load(ordering: .relaxed),
      let ticket = version.beginCheckpoint(now: now, interval: Self.interval)
    else { return }
    context.diskQueue.async { [self] in
      guard !isEnding.load(ordering: .relaxed), let checkpoint = version.syncData(ticket) else {
        return version.endCheckpoint()
      }
      context.storage.perform { [self] in
        version.commit(ticket, checkpoint)
        context.diskQueue.async { [self] in
          version.finishCheckpoint(ticket)
          afterwards()
        }
      }
    }
  }

  /// Drops the checkpoints that have not begun, for the end of the mount.
  ///
  /// Thousands may be queued after thousands of files were seen for the first time; the end commits
  /// those with the most bytes itself.
  func end() { isEnding.store(true, ordering: .relaxed) }
}
