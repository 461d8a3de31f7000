/// The immediate outcome of a read.
enum ReadAttempt: Sendable {
  /// So many bytes are present from the requested offset on.
  case present(byteCount: Int)
  case failed(FileError)
  /// The read must wait for the bytes.
  case absent
}
