package import HTTPTypes

extension HTTPRequest.Method {
  /// Whether a request may be sent again when nobody knows what has become of it: doing it twice is the
  /// same as doing it once (RFC 9110 §9.2.2).
  package var isRepeatable: Bool {
    switch self {
    case .get, .head, .put, .delete, .options, .trace: true
    default: false
    }
  }
}
