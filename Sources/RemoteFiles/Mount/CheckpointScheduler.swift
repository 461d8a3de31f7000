internal import Dispatch
internal import HTTPTransfer
internal import RangeCache

/// What a checkpoint makes safe from a loss of power: the cached bytes of a version.
protocol Checkpointed: Sendable {
  /// What the steps of one checkpoint hand on.
  associatedtype CheckpointTicket: Sendable

  /// The first step of a checkpoint, if enough is uncommitted for `interval`.
  func beginCheckpoint(now: ContinuousClock.Instant, interval: Duration) -> CheckpointTicket?

  /// Waits for the data to be on disk; nil if that failed.
  func syncData(_ ticket: CheckpointTicket) -> Checkpoint?

  /// Appends the COMMIT; on the storage queue.
  func commit(_ ticket: CheckpointTicket, _ checkpoint: Checkpoint)

  /// Waits for the record to be on disk.
  func finishCheckpoint(_ ticket: CheckpointTicket)

  /// There was no checkpoint.
  func endCheckpoint()

  /// Has a complete file stamped.
  func stampSoon()

  // MARK: The end of a mount

  var uncommittedByteCount: Int64 { get }

  /// Waits for the checkpoint under way, if there is one.
  func finishCheckpoints(until deadline: ContinuousClock.Instant)

  /// Commits what is uncommitted.
  func commitFinally()

  /// Stamps it if it is complete.
  func stampFinally()
}

/// Commits what is stored when it is old enough: `fdatasync` of the data on the disk queue, the COMMIT
/// on the storage queue, the only one that appends to records, `fdatasync` of the record on the disk
/// queue again.
final class CheckpointScheduler: Sendable {
  /// How old what is not yet safe from a power cut becomes, however much it is.
  ///
  /// A loss of power costs the time to fetch that again, while a sync holds up the reader who waits.
  private static let interval = Duration.seconds(2)

  private let context: MountContext
  private let afterwards: @Sendable () -> Void

  /// - Parameters:
  ///   - context: has the queues.
  ///   - afterwards: what is done after each checkpoint, on the disk queue.
  init(context: MountContext, afterwards: @escaping @Sendable () -> Void) {
    self.context = context
    self.afterwards = afterwards
  }

  /// Starts a checkpoint of `version` if data that is old enough is uncommitted.
  func checkpointIfDue(_ version: some Checkpointed, now: ContinuousClock.Instant) {
    guard let ticket = version.beginCheckpoint(now: now, interval: Self.interval) else { return }
    context.diskQueue.async { [self] in
      guard let checkpoint = version.syncData(ticket) else { return version.endCheckpoint() }
      context.storage.perform { [self] in
        version.commit(ticket, checkpoint)
        context.diskQueue.async { [self] in
          version.finishCheckpoint(ticket)
          afterwards()
        }
      }
    }
  }
}
