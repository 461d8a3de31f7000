import FoundationEssentials

/// The access conditions of a resource: the credentials and the cookie that a request must have.
struct AccessPolicy {
  /// The response to a request without them.
  enum Refusal {
    /// 401.
    case unauthorized
    /// 403.
    case forbidden
  }

  /// `USER:PASSWORD`; nil for none.
  let credentials: String?

  /// `NAME=VALUE`; nil for none.
  let requiredCookie: String?

  /// Why a request with these fields is refused; nil if it is permitted.
  func refusal(of fields: [String: String]) -> Refusal? {
    if let credentials, !isAuthorized(fields["authorization"], credentials) { return .unauthorized }
    if let requiredCookie, !hasCookie(fields["cookie"], requiredCookie) { return .forbidden }
    return nil
  }

  /// Whether an `Authorization` field has the credentials of the scheme Basic (RFC 7617 §2).
  private func isAuthorized(_ field: String?, _ credentials: String) -> Bool {
    let words = (field ?? "").split(separator: " ")
    return words.count == 2 && words[0].lowercased() == "basic"
      && words[1] == Data(credentials.utf8).base64EncodedString()
  }

  /// Whether a `Cookie` field has the pair (RFC 6265 §4.2.1).
  private func hasCookie(_ field: String?, _ cookie: String) -> Bool {
    (field ?? "").split(separator: ";").contains { ByteText.trimmed($0) == cookie }
  }
}
