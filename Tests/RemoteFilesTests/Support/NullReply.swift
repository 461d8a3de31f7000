import RemoteFiles

/// A reply that nobody looks at.
final class NullReply: ReadReply {
  func succeed(_ bytes: PresentBytes) {}
  func fail(_ error: FileError) {}
}
