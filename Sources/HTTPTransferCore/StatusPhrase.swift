/// Status codes for people.
package enum StatusPhrase {
  /// The reason phrases of common statuses (RFC 9110 §15, RFC 4918 §11, RFC 6585 §4).
  private static let phrases = [
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 407: "Proxy Authentication Required", 408: "Request Timeout",
    409: "Conflict", 410: "Gone", 413: "Content Too Large", 416: "Range Not Satisfiable",
    423: "Locked", 429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
    501: "Not Implemented", 503: "Service Unavailable", 504: "Gateway Timeout",
    507: "Insufficient Storage",
  ]

  /// `HTTP 404 Not Found`.
  package static func text(of status: Int) -> String {
    "HTTP \(status)" + (phrases[status].map { " " + $0 } ?? "")
  }
}
