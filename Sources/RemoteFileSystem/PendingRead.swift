internal import RemoteFiles

/// A parked read of a file, as RemoteFiles sees it.
final class PendingRead<Reply: FileSystemReply & ~Copyable>: ReadReply {
  private let parked: ParkedReply<Reply>
  /// Records the read and its byte count in the trace.
  private let note: (@Sendable (Int) -> Void)?

  init(_ parked: ParkedReply<Reply>, note: (@Sendable (Int) -> Void)?) {
    self.parked = parked
    self.note = note
  }

  func succeed(_ bytes: PresentBytes) {
    note?(bytes.byteCount)
    parked.take()?.present(bytes)
  }

  func fail(_ error: FileError) {
    parked.take()?.error(error.readErrno)
  }
}
