internal import Foundation
internal import Synchronization

/// A progress that ends the task that keeps it true when nobody holds it any more.
///
/// `@unchecked Sendable`, as its superclass is: what it adds is guarded.
final class MirroredProgress: Foundation.Progress, @unchecked Sendable {
  private let task = Mutex<Task<Void, Never>?>(nil)
  /// Held over a verb of what is mirrored: before all locks of transfers and queues.
  private let verbs = Mutex(())

  init(kind: ProgressKind?) {
    super.init(parent: nil, userInfo: nil)
    self.kind = kind
    totalUnitCount = -1
  }

  deinit { task.withLock { $0 }?.cancel() }

  /// Lets `task` live no longer than this progress; it must not hold the progress itself.
  func own(_ task: Task<Void, Never>) { self.task.withLock { $0 = task } }

  /// Makes the verbs of the progress those of what it mirrors.
  ///
  /// Foundation calls the handlers on threads of its own, where a resumption may overtake the pause
  /// before it: so each of them does what the progress says now.
  ///
  /// - Parameters:
  ///   - pause: stops what is mirrored, at once and from any thread.
  ///   - resume: lets it go on.
  ///   - cancel: ends it.
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
    // In the order in which the fraction never passes 1 in between.
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
