internal import Foundation
internal import Synchronization

/// A progress that ends the task that updates it when the last reference to the progress is gone.
///
/// `@unchecked Sendable`, as its superclass is; its own state is guarded by locks.
final class MirroredProgress: Foundation.Progress, @unchecked Sendable {
  private let task = Mutex<Task<Void, Never>?>(nil)
  /// Held during an action on the mirrored object: comes before all locks of transfers and queues.
  private let verbs = Mutex(())

  init(kind: ProgressKind?) {
    super.init(parent: nil, userInfo: nil)
    self.kind = kind
    totalUnitCount = -1
  }

  deinit { task.withLock { $0 }?.cancel() }

  /// Ties the life of `task` to this progress.
  ///
  /// The task must not hold the progress itself.
  func own(_ task: Task<Void, Never>) { self.task.withLock { $0 = task } }

  /// Connects the actions of the progress to those of the mirrored object.
  ///
  /// Foundation calls the handlers on its own threads, where a resume may overtake an earlier
  /// pause. So each handler applies the current state of the progress.
  ///
  /// - Parameters:
  ///   - pause: pauses the mirrored object at once, from any thread.
  ///   - resume: resumes it.
  ///   - cancel: cancels it.
  func forward(
    pause: @escaping @Sendable () -> Void, resume: @escaping @Sendable () -> Void,
    cancel: @escaping @Sendable () -> Void
  ) {
    let follow: @Sendable () -> Void = { [weak self] in
      guard let self else { return }
      verbs.withLock { _ in isPaused ? pause() : resume() }
    }
    isPausable = true
    pausingHandler = follow
    resumingHandler = follow
    isCancellable = true
    cancellationHandler = cancel
  }

  /// Shows `reading`.
  func show(_ reading: ProgressReading) {
    // In the order in which the fraction never exceeds 1 in between.
    if reading.totalUnitCount < 0 || reading.totalUnitCount >= totalUnitCount {
      totalUnitCount = reading.totalUnitCount
      completedUnitCount = reading.completedUnitCount
    } else {
      completedUnitCount = reading.completedUnitCount
      totalUnitCount = reading.totalUnitCount
    }
    setUserInfoObject(reading.bytesPerSecond, forKey: .throughputKey)
    setUserInfoObject(reading.timeLeft, forKey: .estimatedTimeRemainingKey)
    if let counts = reading.fileCounts {
      setUserInfoObject(counts.total, forKey: .fileTotalCountKey)
      setUserInfoObject(counts.ended, forKey: .fileCompletedCountKey)
    }
  }
}
