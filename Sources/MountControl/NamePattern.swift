internal import Glibc

/// A name, or a pattern of names with the shell's wildcards: `*` for any run of bytes, also of
/// slashes and none, `?` for one byte, `[…]` for one of several; a backslash takes the meaning away
/// from what follows it.
///
/// Matches by fnmatch(3) without flags, for which every text is a pattern.
public struct NamePattern: Hashable, Sendable {
  public let text: String

  public init(_ text: String) { self.text = text }

  /// Whether it can stand for more than one name, or for one that is written in another way.
  public var hasWildcards: Bool { text.utf8.contains { Self.special.contains($0) } }

  private static let special = Set("*?[\\".utf8)

  /// Whether it stands for `name`; a name stands for itself, whatever is in it.
  public func matches(_ name: String) -> Bool {
    text == name || hasWildcards && fnmatch(text, name, 0) == 0
  }
}
