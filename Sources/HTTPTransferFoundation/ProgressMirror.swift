/// Updates a `MirroredProgress` without keeping it alive.
///
/// It is an actor, so that of two updates the later one is shown last.
actor ProgressMirror {
  private weak var progress: MirroredProgress?
  private let read: @Sendable () -> ProgressReading

  /// The time between two updates while something may change; a display needs no more.
  private static let interval = Duration.milliseconds(100)

  init(_ progress: MirroredProgress, read: @escaping @Sendable () -> ProgressReading) {
    self.progress = progress
    self.read = read
  }

  /// Shows the current state; false if this was the last update or the progress no longer exists.
  @discardableResult
  func update() -> Bool {
    guard let progress else { return false }
    let reading = read()
    progress.show(reading)
    return !reading.isEnded
  }

  /// Updates regularly until the end, so that the speed falls while no byte arrives.
  nonisolated func follow() async {
    while await update() {
      do { try await Task.sleep(for: Self.interval) } catch { return }
    }
  }
}
