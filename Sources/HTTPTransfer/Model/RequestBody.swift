/// What a request sends after its head.
///
/// Its media type is that of a `Content-Type` among the request's fields, where one is there and the
/// body is no form.
public enum RequestBody: Sendable {
  /// These bytes.
  case bytes([UInt8], contentType: String? = nil)
  /// The contents of a file, read while they are sent.
  ///
  /// A file that changes meanwhile fails the transfer.
  case file(String, contentType: String? = nil)
  /// Names and values as `application/x-www-form-urlencoded` (the form of a `POST`).
  case form([(name: String, value: String)])
  /// Fields and files as `multipart/form-data` (RFC 7578).
  case multipart([FormPart])

  /// Whether its encoding is decided by its case.
  var isForm: Bool {
    switch self {
    case .bytes, .file: false
    case .form, .multipart: true
    }
  }
}

/// One field of a ``RequestBody/multipart(_:)`` body.
public struct FormPart: Sendable {
  /// What a part holds.
  public enum Content: Sendable {
    case text(String)
    /// A file; `name` is what the server is told of it, the last component of `path` unless given.
    case file(path: String, name: String? = nil)
  }

  public var name: String
  public var content: Content
  /// The part's media type; nil for none on texts and `application/octet-stream` on files.
  public var contentType: String?

  public init(name: String, content: Content, contentType: String? = nil) {
    self.name = name
    self.content = content
    self.contentType = contentType
  }
}
