/// The validators of one response, and their effect on conditional fields (RFC 9110 §13).
struct Validators: Equatable {
  /// The `ETag` field as sent; nil for none.
  let entityTag: String?

  /// The modification time in seconds since 1970; nil if it is not sent.
  let lastModified: Int64?

  /// The validators of a version.
  ///
  /// `isFlipped` selects the second of two entity tags. A coded form has its own entity tag (RFC
  /// 9110 §8.8.3.3).
  init(
    resource: Resource, version: UInt64, policy: ResponseParameters.ValidatorPolicy,
    isFlipped: Bool, coding: ContentCoding? = nil
  ) {
    let opaque =
      resource.entityTag(version: version) + (isFlipped ? "-flip" : "")
      + (coding.map { "-\($0.rawValue)" } ?? "")
    switch policy {
    case .both, .etag: entityTag = "\"\(opaque)\""
    case .weak: entityTag = "W/\"\(opaque)\""
    case .date, .none: entityTag = nil
    }
    switch policy {
    case .both, .date: lastModified = resource.lastModified(version: version)
    case .etag, .weak, .none: lastModified = nil
    }
  }

  /// The result of a request's preconditions.
  enum Precondition {
    case proceed
    /// The response is 304.
    case notModified
    /// The response is 412.
    case failed
  }

  /// Evaluates a GET's or HEAD's preconditions in the order of RFC 9110 §13.2.2.
  func evaluate(_ fields: [String: String]) -> Precondition {
    if let list = fields["if-match"] {
      if !matches(list, isStrong: true) { return .failed }
    } else if let since = fields["if-unmodified-since"].flatMap({ HTTPDate.seconds(field: $0) }),
      let lastModified, lastModified > since
    {
      return .failed
    }
    if let list = fields["if-none-match"] {
      if matches(list, isStrong: false) { return .notModified }
    } else if let since = fields["if-modified-since"].flatMap({ HTTPDate.seconds(field: $0) }),
      let lastModified, lastModified <= since
    {
      return .notModified
    }
    return .proceed
  }

  /// Whether a range may be served under an `If-Range` field: only if its validator is strong and
  /// current (RFC 9110 §13.1.5).
  func permitsRange(ifRange field: String?) -> Bool {
    guard let field else { return true }
    if field.hasPrefix("\"") { return field == entityTag }
    if field.hasPrefix("W/") { return false }
    return lastModified.map { HTTPDate.field(seconds: $0) == field } ?? false
  }

  private func matches(_ list: String, isStrong: Bool) -> Bool {
    if list == "*" { return true }
    guard let entityTag else { return false }
    if isStrong, entityTag.hasPrefix("W/") { return false }
    return list.split(separator: ",").contains { item in
      let item = ByteText.trimmed(item)
      return isStrong ? item == entityTag : opaque(item) == opaque(entityTag[...])
    }
  }

  private func opaque(_ tag: Substring) -> Substring {
    tag.hasPrefix("W/") ? tag.dropFirst(2) : tag
  }
}
