/// Paths by their bytes, as the kernel takes them.
///
/// To Swift a slash and a following combining mark are one character, which is not a slash.
/// Splitting or comparing by characters would thus yield a path other than the opened one.
extension StringProtocol {
  /// The components between the slashes of a path.
  package func pathParts(omittingEmpty: Bool = true) -> [String] {
    utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: omittingEmpty)
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// Whether a path begins at the root.
  package var isAbsolutePath: Bool { utf8.first == UInt8(ascii: "/") }

  /// Whether a path ends in a slash, and so names a directory.
  package var hasFinalSlash: Bool { utf8.suffix(1).first == UInt8(ascii: "/") }

  /// Whether a name ends in the bytes of `suffix`.
  package func hasByteSuffix(_ suffix: String) -> Bool {
    utf8.reversed().starts(with: suffix.utf8.reversed())
  }
}
