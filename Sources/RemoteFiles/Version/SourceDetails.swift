package import HTTPTransferCore

/// What a list says about a file besides its URL: mirrors, hashes, length and rate limit.
///
/// Only files with such details have an object, so that the others, of which there may be a
/// million, need no memory for it.
package final class SourceDetails: Hashable, Sendable {
  /// Further URLs of the same bytes, in order of preference.
  package let mirrors: [RemoteURL]
  /// The checksum that the whole must have.
  package let checksum: Checksum?
  /// The hashes that the pieces must have.
  package let pieces: PieceHashes?
  /// The complete length in bytes.
  package let length: Int64?
  /// The most bytes per second; 0 for no limit, nil if the list does not say.
  package let rateLimit: Int64?

  /// - Returns: nil if there are no details.
  package init?(
    mirrors: [RemoteURL] = [], checksum: Checksum? = nil, pieces: PieceHashes? = nil,
    length: Int64? = nil, rateLimit: Int64? = nil
  ) {
    self.mirrors = mirrors
    self.checksum = checksum
    self.pieces = pieces
    self.length = length
    self.rateLimit = rateLimit
    guard describesContent || rateLimit != nil else { return nil }
  }

  /// Whether it describes the bytes or their locations.
  var describesContent: Bool {
    !mirrors.isEmpty || checksum != nil || pieces != nil || length != nil
  }

  /// Whether `other` describes the same bytes and locations.
  func describesSameContent(as other: SourceDetails) -> Bool {
    mirrors == other.mirrors && checksum == other.checksum && pieces == other.pieces
      && length == other.length
  }

  /// The evidence that two servers have the same file.
  var trust: MirrorSet.Trust {
    pieces != nil ? .hashesBeforeUse : checksum != nil ? .hashesAfterUse : .validators
  }

  /// Why a server that describes a file of `length` bytes cannot have the right one.
  ///
  /// - Parameter length: the complete length in bytes; nil if the server does not give it.
  /// - Returns: the reason in one line; nil if it can.
  func contradiction(ofLength length: Int64?) -> String? {
    guard self.length != nil || pieces != nil else { return nil }
    guard let length else { return "the server does not say how long its file is" }
    if let expected = self.length, expected != length {
      return "the server's file has \(length) bytes, but the list says \(expected)"
    }
    if let pieces, !pieces.covers(length: length) {
      return "the server's file has \(length) bytes, for which the list has too many or too few"
        + " piece hashes"
    }
    return nil
  }

  package static func == (left: SourceDetails, right: SourceDetails) -> Bool {
    left === right
      || left.describesSameContent(as: right) && left.rateLimit == right.rateLimit
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(mirrors)
    hasher.combine(checksum)
    hasher.combine(length)
  }
}
