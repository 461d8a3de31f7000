/// Identifies one version of a remote file: validators, complete length and content coding.
///
/// Every inode, every cache record and every request in flight is pinned to one version. One file
/// never mixes bytes of two versions.
package struct ContentVersion: Hashable, Sendable {
  /// The entity tag; nil if the server sends none.
  package var entityTag: EntityTag?

  /// The `Last-Modified` field as sent; nil if the server sends none that could be a date.
  package var lastModified: String?

  /// What ``lastModified`` proves.
  package var dateStrength = DateStrength.undated

  /// How strongly equal modification dates prove equal bytes (RFC 9110 §8.8.2.2).
  package enum DateStrength: String, Sendable {
    /// The response's `Date` is at least a second later: any later change gets another date.
    case strong
    /// The response was made within that second: the file may have changed in the rest of it.
    case weak
    /// The time of the response is unknown.
    case undated
  }

  /// The complete length in bytes; nil while unknown.
  package var completeLength: Int64?

  /// The content coding (`gzip`, …); nil for identity.
  package var contentCoding: String?

  package init(
    entityTag: EntityTag? = nil, lastModified: String? = nil, completeLength: Int64? = nil,
    contentCoding: String? = nil
  ) {
    self.entityTag = entityTag
    self.lastModified = lastModified
    self.completeLength = completeLength
    self.contentCoding = contentCoding
  }

  /// How reliably the version can be distinguished from others.
  package enum Strength: String, Sendable {
    /// A strong entity tag or a strong modification date: equal validators promise equal bytes.
    case strong
    /// A weak entity tag, or a modification date that other bytes may share.
    case weak
    /// No validator: only a change of length can be noticed.
    case unverifiable
  }

  package var strength: Strength {
    if let entityTag, !entityTag.isWeak { return .strong }
    if lastModified != nil, dateStrength == .strong { return .strong }
    return entityTag == nil && lastModified == nil ? .unverifiable : .weak
  }

  /// Whether equal validators prove that bytes from another time belong to the same file.
  ///
  /// A weak entity tag does not: it promises equivalent bytes, not equal bytes. A modification date
  /// in the second of the response does not either.
  package var isResumable: Bool { strength == .strong }

  /// The answer to "are these two the same bytes?".
  package enum Comparison: Sendable {
    case same
    case different
    /// One version lacks a validator that the other one has.
    case unknown
  }

  /// Compares the version of a response with this version, which is pinned.
  ///
  /// Lengths and codings must agree where both are known. Entity tags decide if both versions have
  /// one; otherwise modification dates decide. A weak tag does not overrule the dates: both must
  /// agree. If a strong tag has become weak, it no longer promises the pinned bytes, so only equal
  /// dates do. Equal dates prove nothing if the pinned date is in the second of its response. A
  /// pinned version without validators is compared by length alone, and only with a response that
  /// has no validators either.
  package func compare(_ response: ContentVersion) -> Comparison {
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
      // Only one side has a tag: the dates alone do not prove the bytes equal.
      return entityTag == nil && dateStrength != .weak ? .same : .unknown
    }
    if entityTag != nil || lastModified != nil { return .unknown }
    // A validator that appears later does not vouch for a version that had none, or only weak ones.
    return response.entityTag == nil && response.lastModified == nil ? .same : .different
  }

  /// Whether a stored version is this one: equal validators and codings, and equal lengths where
  /// both are known.
  package func hasSameIdentity(as other: ContentVersion) -> Bool {
    guard entityTag == other.entityTag, lastModified == other.lastModified,
      contentCoding == other.contentCoding
    else { return false }
    guard let mine = completeLength, let theirs = other.completeLength else { return true }
    return mine == theirs
  }

  /// The version for a record that is trusted later: without a modification date that is not
  /// strong.
  package var provable: ContentVersion {
    var version = self
    if dateStrength != .strong { version.lastModified = nil }
    return version
  }

  /// The version for a cache record: without a modification date that is in the second of its
  /// response and therefore proves nothing.
  package var recordable: ContentVersion {
    var version = self
    if dateStrength == .weak { version.lastModified = nil }
    return version
  }

  /// Whether a response made a second later could prove more than this one, which was made in the
  /// second of the change.
  package var isTooFresh: Bool {
    entityTag == nil && lastModified != nil && dateStrength == .weak
  }

  /// A short description of the validator, for status displays.
  package var validatorDescription: String {
    if let entityTag { return "ETag \(entityTag)" }
    if let lastModified { return "Last-Modified \(lastModified)" }
    return "unverifiable"
  }
}
