/// The body that a request sends after its head.
///
/// A `Content-Type` among the request's fields determines its media type, unless the body is a
/// form.
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

  /// Whether the case determines the encoding.
  var isForm: Bool {
    switch self {
    case .bytes, .file: false
    case .form, .multipart: true
    }
  }
}

/// One field of a ``RequestBody/multipart(_:)`` body.
public struct FormPart: Sendable {
  /// The content of a part.
  public enum Content: Sendable {
    case text(String)
    /// A file; `name` is the file name to send, by default the last component of `path`.
    case file(path: String, name: String? = nil)
  }

  public var name: String
  public var content: Content
  /// The part's media type; nil for no type on texts and `application/octet-stream` on files.
  public var contentType: String?

  public init(name: String, content: Content, contentType: String? = nil) {
    self.name = name
    self.content = content
    self.contentType = contentType
  }
}
