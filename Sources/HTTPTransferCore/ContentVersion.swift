/// What tells one version of a remote file from another: validators, complete length, coding.
///
/// Every inode, every cache record and every request in flight is pinned to one version; bytes of
/// two versions never meet in one file.
public struct ContentVersion: Hashable, Sendable {
  /// The entity tag, nil where the server sends none.
  public var entityTag: EntityTag?

  /// The `Last-Modified` field as sent, nil where the server sends none that could be a date.
  public var lastModified: String?

  /// What ``lastModified`` proves.
  public var dateStrength = DateStrength.undated

  /// How far equal modification dates prove equal bytes (RFC 9110 §8.8.2.2).
  public enum DateStrength: String, Sendable {
    /// The response's `Date` is at least a second later: what changed afterwards has another date.
    case strong
    /// The response was made within that second: the file may have changed in the rest of it.
    case weak
    /// Nothing tells when the response was made.
    case undated
  }

  /// The complete length in bytes, nil while unknown.
  public var completeLength: Int64?

  /// The content coding (`gzip`, …), nil for identity.
  public var contentCoding: String?

  public init(
    entityTag: EntityTag? = nil, lastModified: String? = nil, completeLength: Int64? = nil,
    contentCoding: String? = nil
  ) {
    self.entityTag = entityTag
    self.lastModified = lastModified
    self.completeLength = completeLength
    self.contentCoding = contentCoding
  }

  /// How far the version can be told from another.
  public enum Strength: String, Sendable {
    /// A strong entity tag, or a modification date that is strong: equal ones promise equal bytes.
    case strong
    /// A weak entity tag, or a modification date that may belong to other bytes too.
    case weak
    /// No validator at all: only a change of length can be noticed.
    case unverifiable
  }

  public var strength: Strength {
    if let entityTag, !entityTag.isWeak { return .strong }
    if lastModified != nil, dateStrength == .strong { return .strong }
    return entityTag == nil && lastModified == nil ? .unverifiable : .weak
  }

  /// Whether equal validators prove that bytes from another time belong to the same file.
  ///
  /// A weak entity tag does not: it promises equivalent bytes, not equal ones. Neither does a
  /// modification date of the second in which the response was made.
  package var isResumable: Bool { strength == .strong }

  /// The answer to "are these two the same bytes?".
  public enum Comparison: Sendable {
    case same
    case different
    /// One of the two lacks the validator that the other one has.
    case unknown
  }

  /// Compares a response's version with this one, which is pinned.
  ///
  /// Lengths and codings must agree where both are known. Then the entity tags decide where both
  /// have one, else the modification dates. A weak tag does not overrule the dates: both must
  /// agree. A strong tag that has become a weak one no longer promises the bytes that are pinned: then
  /// only equal dates do. Equal dates prove nothing where the pinned one is of the very second in which
  /// its response was made. A pinned version without validators is compared by length alone, with a response
  /// that has none either.
  public func compare(_ response: ContentVersion) -> Comparison {
    if contentCoding != response.contentCoding { return .different }
    if let mine = completeLength, let theirs = response.completeLength, mine != theirs {
      return .different
    }
    if let mine = entityTag, let theirs = response.entityTag {
      guard mine.bytes == theirs.bytes else { return .different }
      if !mine.isWeak && !theirs.isWeak { return .same }
      var haveEqualDates = false
      if let ours = lastModified, let other = response.lastModified {
        guard ours == other else { return .different }
        haveEqualDates = dateStrength != .weak
      }
      return mine.isWeak || haveEqualDates ? .same : .unknown
    }
    if let mine = lastModified, let theirs = response.lastModified {
      guard mine == theirs else { return .different }
      // The tag is there on one side only: the dates alone do not prove the bytes equal.
      return entityTag == nil && dateStrength != .weak ? .same : .unknown
    }
    if entityTag != nil || lastModified != nil { return .unknown }
    // What once had none, or none that proved anything, is not vouched for by one that comes later.
    return response.entityTag == nil && response.lastModified == nil ? .same : .different
  }

  /// Whether a stored version is this one: all validators and the coding alike, and the lengths where
  /// both are known.
  public func hasSameIdentity(as other: ContentVersion) -> Bool {
    guard entityTag == other.entityTag, lastModified == other.lastModified,
      contentCoding == other.contentCoding
    else { return false }
    guard let mine = completeLength, let theirs = other.completeLength else { return true }
    return mine == theirs
  }

  /// The version as a record may hold it that is believed later on: without a modification date that
  /// is not strong.
  package var provable: ContentVersion {
    var version = self
    if dateStrength != .strong { version.lastModified = nil }
    return version
  }

  /// The version as a record of the cache may hold it: without a modification date that proves nothing,
  /// because it is of the second in which its response was made.
  package var recordable: ContentVersion {
    var version = self
    if dateStrength == .weak { version.lastModified = nil }
    return version
  }

  /// Whether a response made a second later could prove more than this one, which is of the second in
  /// which the file changed.
  public var isTooFresh: Bool {
    entityTag == nil && lastModified != nil && dateStrength == .weak
  }

  /// The validator in a word or two, for status displays.
  public var validatorDescription: String {
    if let entityTag { return "ETag \(entityTag)" }
    if let lastModified { return "Last-Modified \(lastModified)" }
    return "unverifiable"
  }
}
