public import Foundation
public import HTTPTransfer

extension Transfer {
  /// A `Foundation.Progress` that follows this transfer.
  ///
  /// Its units are bytes, of the request's body for an upload and of the response's otherwise, those
  /// of an earlier run included. It is indeterminate while the total is unknown, and its fraction
  /// is 1 only when the transfer has finished; a file without a byte ends as 1 of 1. One that has
  /// failed or was cancelled stays where it was. Speed (bytes per second) and time left (seconds)
  /// are in `userInfo` under `throughputKey` and `estimatedTimeRemainingKey`.
  ///
  /// Its verbs `pause()`, `resume()` and `cancel()` are those of the transfer. It is brought up to
  /// date about ten times a second, by a task that ends with the transfer or when nobody holds the
  /// progress any more; the transfer never waits for it, and goes on without it.
  ///
  /// - Returns: a new progress, at the present state, without a parent.
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
        // Before the start there is nothing to look at.
        guard await iterator.next() != nil else {
          await mirror.update()
          return
        }
        async let following: Void = mirror.follow()
        while await iterator.next() != nil {
          // The end is seen soon, and many small events do not wake this task one by one.
          try? await Task.sleep(for: .milliseconds(20))
        }
        await mirror.update()
        await following
      })
    return mirrored
  }

  /// What Foundation calls an upload on Apple's systems; elsewhere it has no name for it.
  private static var uploading: Foundation.Progress.FileOperationKind {
    Foundation.Progress.FileOperationKind(rawValue: "NSProgressFileOperationKindUploading")
  }
}
