/// Keeps a `MirroredProgress` true, without keeping it alive.
///
/// An actor, so that of two looks at the progress the later one is shown last.
actor ProgressMirror {
  private weak var progress: MirroredProgress?
  private let read: @Sendable () -> ProgressReading

  /// The time between two looks while something may change: a display needs no more.
  private static let interval = Duration.milliseconds(100)

  init(_ progress: MirroredProgress, read: @escaping @Sendable () -> ProgressReading) {
    self.progress = progress
    self.read = read
  }

  /// Shows how things are now; false where that was the end, or nobody looks any more.
  @discardableResult
  func update() -> Bool {
    guard let progress else { return false }
    let reading = read()
    progress.show(reading)
    return !reading.isEnded
  }

  /// Looks from time to time until the end, so that a speed falls while no byte arrives.
  nonisolated func follow() async {
    while await update() {
      do { try await Task.sleep(for: Self.interval) } catch { return }
    }
  }
}
