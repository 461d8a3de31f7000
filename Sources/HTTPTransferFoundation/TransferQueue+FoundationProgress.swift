public import Foundation
public import HTTPTransfer

extension TransferQueue {
  /// A `Foundation.Progress` that follows this queue and all that is added to it.
  ///
  /// Its fraction is 1 only when everything that was added has ended. In `userInfo` are the speed of
  /// all transfers (bytes per second, `throughputKey`), the time left (seconds,
  /// `estimatedTimeRemainingKey`), and the numbers of transfers (`fileTotalCountKey`) and of those
  /// that have ended (`fileCompletedCountKey`).
  ///
  /// Its `pause()` suspends the queue, `resume()` starts it and `cancel()` cancels all. It is brought
  /// up to date about ten times a second while something is to do, by a task that ends when nobody
  /// holds the progress any more; no transfer ever waits for it.
  ///
  /// - Parameter style: whether the units are transfers or bytes.
  /// - Returns: a new progress, at the present state, without a parent.
  public func makeProgress(style: ProgressStyle = .simple) -> Foundation.Progress {
    let mirrored = MirroredProgress(kind: style == .accurate ? .file : nil)
    mirrored.forward(
      pause: { [weak self] in self?.suspend() }, resume: { [weak self] in self?.start() },
      cancel: { [weak self] in self?.cancelAll() })
    let mirror = ProgressMirror(mirrored) { ProgressReading(self.progress, style: style) }
    // Listening begins before the first look, so that nothing falls in between.
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
