internal import Glibc

/// A name, or a pattern with the shell's wildcards.
///
/// `*` matches any run of bytes, also an empty one and one with slashes; `?` matches one byte;
/// `[…]` matches one of several bytes. A backslash escapes the next character.
///
/// Matches by fnmatch(3) without flags, for which every text is a valid pattern.
package struct NamePattern: Hashable, Sendable {
  package let text: String

  package init(_ text: String) { self.text = text }

  /// Whether it can match more than one name, or a name that is written differently.
  package var hasWildcards: Bool { text.utf8.contains { Self.special.contains($0) } }

  private static let special = Set("*?[\\".utf8)

  /// Whether it matches `name`.
  ///
  /// A name always matches itself, whatever it contains.
  package func matches(_ name: String) -> Bool {
    text == name || hasWildcards && fnmatch(text, name, 0) == 0
  }
}
