public import HTTPTransferCore

/// What a list says of a file beside its URL: where else its bytes are, what they must be, and how fast
/// they may come.
///
/// One object for each file of which it says any of that, so that the others, of which there may be a
/// million, need not pay for it.
public final class SourceDetails: Hashable, Sendable {
  /// Further URLs of the same bytes, in the order of preference.
  public let mirrors: [RemoteURL]
  /// What the whole must hash to.
  public let checksum: Checksum?
  /// What each piece must hash to.
  public let pieces: PieceHashes?
  /// The complete length in bytes.
  public let length: Int64?
  /// The most bytes per second; 0 for no limit, nil where the list says nothing.
  public let rateLimit: Int64?

  /// - Returns: nil where there is nothing to say.
  public init?(
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

  /// Whether it says anything of the bytes, or where they are.
  var describesContent: Bool {
    !mirrors.isEmpty || checksum != nil || pieces != nil || length != nil
  }

  /// Whether `other` says the same of the bytes, and of where they are.
  func describesSameContent(as other: SourceDetails) -> Bool {
    mirrors == other.mirrors && checksum == other.checksum && pieces == other.pieces
      && length == other.length
  }

  /// What shows that two servers have the same file.
  var trust: MirrorSet.Trust {
    pieces != nil ? .hashesBeforeUse : checksum != nil ? .hashesAfterUse : .validators
  }

  /// Why no server that describes a file of `length` bytes can have the right one.
  ///
  /// - Parameter length: the complete length in bytes; nil where the server does not say it.
  /// - Returns: the reason in one line; nil where it can.
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

  public static func == (left: SourceDetails, right: SourceDetails) -> Bool {
    left === right
      || left.describesSameContent(as: right) && left.rateLimit == right.rateLimit
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(mirrors)
    hasher.combine(checksum)
    hasher.combine(length)
  }
}
