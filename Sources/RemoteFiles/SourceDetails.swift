public import HTTPTransferCore

/// What a list says of a file beside its URL: where else its bytes are, and what they must be.
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

  /// - Returns: nil where there is nothing to say.
  public init?(
    mirrors: [RemoteURL] = [], checksum: Checksum? = nil, pieces: PieceHashes? = nil,
    length: Int64? = nil
  ) {
    guard !mirrors.isEmpty || checksum != nil || pieces != nil || length != nil else { return nil }
    self.mirrors = mirrors
    self.checksum = checksum
    self.pieces = pieces
    self.length = length
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
      || left.mirrors == right.mirrors && left.checksum == right.checksum
        && left.pieces == right.pieces && left.length == right.length
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(mirrors)
    hasher.combine(checksum)
    hasher.combine(length)
  }
}
