public import Foundation
public import HTTPTransfer

extension TransferQueue {
  /// A `Foundation.Progress` that follows this queue and all transfers that are added to it.
  ///
  /// Its fraction is 1 only when everything that was added has ended. `userInfo` contains the speed
  /// of all transfers (bytes per second, `throughputKey`), the time left (seconds,
  /// `estimatedTimeRemainingKey`), the number of transfers (`fileTotalCountKey`) and the number of
  /// those that have ended (`fileCompletedCountKey`).
  ///
  /// Its `pause()` suspends the queue, `resume()` starts it and `cancel()` cancels all transfers.
  /// While there is work, a task updates it about ten times a second. The task ends when the last
  /// reference to the progress is gone. No transfer ever waits for the progress.
  ///
  /// - Parameter style: whether the units are transfers or bytes.
  /// - Returns: a new progress in the current state, without a parent.
  public func makeProgress(style: ProgressStyle = .simple) -> Foundation.Progress {
    let mirrored = MirroredProgress(kind: style == .accurate ? .file : nil)
    mirrored.forward(
      pause: { [weak self] in self?.suspend() }, resume: { [weak self] in self?.start() },
      cancel: { [weak self] in self?.cancelAll() })
    let mirror = ProgressMirror(mirrored) { ProgressReading(self.progress, style: style) }
    // Listen before the first update, so that no event is missed in between.
    let events = events
    mirrored.show(ProgressReading(progress, style: style))
    mirrored.own(
      Task {
        var following = Task { await mirror.follow() }
        for await event in events {
          await mirror.update()
          guard case .added = event.kind else { continue }
          following.cancel()
          following = Task { await mirror.follow() }
        }
        following.cancel()
      })
    return mirrored
  }
}
