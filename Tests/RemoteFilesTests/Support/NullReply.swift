import RemoteFiles

/// A reply that is ignored.
final class NullReply: ReadReply {
  func succeed(_ bytes: PresentBytes) {}
  func fail(_ error: FileError) {}
}
