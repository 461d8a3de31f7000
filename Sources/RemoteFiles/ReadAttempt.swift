/// What can be said about a read at once.
enum ReadAttempt: Sendable {
  /// So many bytes are present, from the offset asked for on.
  case present(byteCount: Int)
  case failed(FileError)
  /// The bytes must be waited for.
  case absent
}
