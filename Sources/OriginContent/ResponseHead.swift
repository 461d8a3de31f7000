/// The head of a response: status and fields in the order of sending.
package struct ResponseHead: Equatable, Sendable {
  package struct Field: Equatable, Sendable {
    package let name: String
    package let value: String
  }

  package var status: Int
  package private(set) var fields: [Field] = []

  /// The reason phrase; nil for the usual one of the status.
  var reason: String?

  /// Lines after the fields, sent unchanged.
  var rawLines: [String] = []

  package init(status: Int) {
    self.status = status
  }

  /// The value of the first field of this name as it was added; nil if there is none.
  package subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

  /// Adds a field; nil adds none.
  package mutating func add(_ name: String, _ value: String?) {
    if let value { fields.append(Field(name: name, value: value)) }
  }

  /// Replaces the fields of this name.
  mutating func set(_ name: String, _ value: String) {
    fields.removeAll { $0.name == name }
    add(name, value)
  }

  /// Changes the first field of this name, in any case, and removes the others; nil removes all.
  mutating func replace(_ name: String, _ value: String?) {
    let lowercased = name.lowercased()
    let index = fields.firstIndex { $0.name.lowercased() == lowercased } ?? fields.endIndex
    fields.removeAll { $0.name.lowercased() == lowercased }
    if let value { fields.insert(Field(name: name, value: value), at: index) }
  }

  /// The head as it is sent, with the empty line at its end.
  package var bytes: [UInt8] {
    var text = "HTTP/1.1 \(status) \(reason ?? Self.reason(status))\r\n"
    for field in fields { text += "\(field.name): \(field.value)\r\n" }
    for line in rawLines { text += line + "\r\n" }
    text += "\r\n"
    return Array(text.utf8)
  }

  /// The status of a final response that begins with these bytes; nil if they are not one.
  package static func status(ofBytes bytes: [UInt8]) -> Int? {
    // `HTTP/1.1 200`
    guard bytes.count >= 12, bytes.starts(with: Array("HTTP/".utf8)), bytes[8] == 0x20 else {
      return nil
    }
    let status = Int(String(decoding: bytes[9..<12], as: UTF8.self))
    return status.flatMap { $0 >= 200 ? $0 : nil }
  }

  static func reason(_ status: Int) -> String {
    switch status {
    case 100: "Continue"
    case 102: "Processing"
    case 103: "Early Hints"
    case 200: "OK"
    case 201: "Created"
    case 202: "Accepted"
    case 204: "No Content"
    case 205: "Reset Content"
    case 206: "Partial Content"
    case 301: "Moved Permanently"
    case 302: "Found"
    case 303: "See Other"
    case 304: "Not Modified"
    case 307: "Temporary Redirect"
    case 308: "Permanent Redirect"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 407: "Proxy Authentication Required"
    case 409: "Conflict"
    case 410: "Gone"
    case 412: "Precondition Failed"
    case 413: "Content Too Large"
    case 415: "Unsupported Media Type"
    case 416: "Range Not Satisfiable"
    case 429: "Too Many Requests"
    case 431: "Request Header Fields Too Large"
    case 500: "Internal Server Error"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    case 504: "Gateway Timeout"
    default: "Status"
    }
  }
}
