/// The one who waits for bytes of a file; exactly one of its methods is called, exactly once.
public protocol ReadReply: AnyObject, Sendable {
  /// The bytes are in the file behind `descriptor`, valid during the call, from `offset` on;
  /// `byteCount` may be less than asked for at the end of the file, and 0 beyond it.
  func succeed(descriptor: CInt, offset: Int64, byteCount: Int)
  func fail(_ error: FileError)
}

/// What can be said about a read at once.
public enum ReadAttempt: Sendable {
  /// So many bytes are present, from the offset asked for on.
  case present(byteCount: Int)
  case failed(FileError)
  /// The bytes must be waited for.
  case absent
}
