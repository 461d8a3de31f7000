package import HTTPTypes

extension HTTPRequest.Method {
  /// Whether a request whose fate is unknown may be sent again: repeating it has the same effect as
  /// sending it once (RFC 9110 §9.2.2).
  package var isRepeatable: Bool {
    switch self {
    case .get, .head, .put, .delete, .options, .trace: true
    default: false
    }
  }
}
