public import Foundation
public import HTTPTransfer

extension Transfer {
  /// A `Foundation.Progress` that follows this transfer.
  ///
  /// Its units are bytes: of the request's body for an upload, otherwise of the response's body,
  /// including those of an earlier run. It is indeterminate while the total is unknown, and its
  /// fraction is 1 only when the transfer has finished. A file without a byte ends as 1 of 1. A
  /// failed or cancelled transfer keeps its last values. Speed (bytes per second) and time left
  /// (seconds) are in `userInfo` under `throughputKey` and `estimatedTimeRemainingKey`.
  ///
  /// Its `pause()`, `resume()` and `cancel()` act on the transfer. A task updates it about ten
  /// times a second. The task ends with the transfer, or when the last reference to the progress is
  /// gone. The transfer never waits for the progress and continues without it.
  ///
  /// - Returns: a new progress in the current state, without a parent.
  public func makeProgress() -> Foundation.Progress {
    let mirrored = MirroredProgress(kind: .file)
    mirrored.setUserInfoObject(
      request.body == nil
        ? Foundation.Progress.FileOperationKind.downloading : Self.uploading,
      forKey: .fileOperationKindKey)
    if case .file(let path, let base, _) = request.destination {
      let directory = base.map { URL(fileURLWithPath: $0, isDirectory: true) }
      mirrored.setUserInfoObject(
        URL(fileURLWithPath: path, relativeTo: directory).absoluteURL, forKey: .fileURLKey)
    }
    mirrored.forward(
      pause: { [weak self] in self?.pause() }, resume: { [weak self] in self?.resume() },
      cancel: { [weak self] in self?.cancel() })
    mirrored.show(ProgressReading(progress))
    let mirror = ProgressMirror(mirrored) { ProgressReading(self.progress) }
    let events = events
    mirrored.own(
      Task {
        var iterator = events.makeAsyncIterator()
        // Before the start there is nothing to show.
        guard await iterator.next() != nil else {
          await mirror.update()
          return
        }
        async let following: Void = mirror.follow()
        while await iterator.next() != nil {
          // Short enough to show the end soon, and long enough that many small events do not wake
          // this task one by one.
          try? await Task.sleep(for: .milliseconds(20))
        }
        await mirror.update()
        await following
      })
    return mirrored
  }

  /// Foundation's name for an upload on Apple's systems; elsewhere it has none.
  private static var uploading: Foundation.Progress.FileOperationKind {
    Foundation.Progress.FileOperationKind(rawValue: "NSProgressFileOperationKindUploading")
  }
}
