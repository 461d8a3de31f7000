/// Waits for bytes of a file; exactly one of its methods is called, exactly once.
package protocol ReadReply: AnyObject, Sendable {
  /// The bytes are present: fewer than requested at the end of the file, and none beyond it.
  func succeed(_ bytes: PresentBytes)
  func fail(_ error: FileError)
}
