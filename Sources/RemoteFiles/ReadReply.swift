/// The one who waits for bytes of a file; exactly one of its methods is called, exactly once.
public protocol ReadReply: AnyObject, Sendable {
  /// They are there: fewer than asked for at the end of the file, and none beyond it.
  func succeed(_ bytes: PresentBytes)
  func fail(_ error: FileError)
}
