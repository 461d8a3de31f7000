import RemoteFiles

/// A reply of which only the identity counts: the one who decides does not answer.
final class NullReply: ReadReply {
  func succeed(_ bytes: PresentBytes) {}
  func fail(_ error: FileError) {}
}
