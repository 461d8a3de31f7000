package import HTTPTypes

/// The meaning of the head of a response to a `GET`, determined before any byte of the body is
/// stored.
package enum ResponseVerdict: Equatable, Sendable {
  /// 206: the body is `range` of a representation of this version.
  case part(ContentVersion, range: ByteRange)
  /// 200: the body is the whole representation of this version.
  case whole(ContentVersion)
  /// 304: the version named in the condition is current; holds the validators from the response.
  case notModified(ContentVersion)
  /// 412: the version named in the condition is no longer current.
  case preconditionFailed
  /// 416: the range lies beyond the end; holds the length according to the server.
  case unsatisfiable(completeLength: Int64?)
  /// 404, 410: the file does not exist.
  case missing(status: Int)
  /// 401, 403, 407: access is denied.
  case denied(status: Int)
  /// Any other 4xx: the server does not accept the request.
  case rejected(status: Int)
  /// 408, 425, 429 and 5xx: try later, after `retryAfter` if the server names a delay.
  case unavailable(status: Int, retryAfter: Duration?)
  /// An answer that cannot be correct: none of it may be stored.
  case invalid(reason: String)

  /// Judges the head of a response to a request for `asked` (nil for the whole).
  ///
  /// Follows RFC 9110 §14 and §15.3.7. A 206 must carry a `Content-Range` whose range starts at or
  /// before the first byte requested, and any `Content-Length` must fit it. A 200 must not have a
  /// `Content-Range` of a part, or one that cannot be read.
  ///
  /// - Parameters:
  ///   - response: the head of the final response.
  ///   - asked: the requested range.
  ///   - now: our time in seconds since 1970. It is needed for a `Retry-After` date in a response
  ///     without a `Date`; without it such a field is ignored.
  package init(_ response: HTTPResponse, asked: ByteRange?, now: Int64? = nil) {
    let fields = response.headerFields
    switch response.status.code {
    // 203 is a 200 that a proxy has changed (RFC 9110 §15.3.4).
    case 200, 203: self = Self.judgeWhole(fields)
    case 206: self = Self.judgePart(fields, asked: asked)
    case 304: self = .notModified(ContentVersion(fields, completeLength: nil))
    case 412: self = .preconditionFailed
    case 416:
      let range = fields.readable(.contentRange).flatMap(ContentRange.init(field:))
      self = .unsatisfiable(completeLength: range?.completeLength)
    case 404, 410: self = .missing(status: response.status.code)
    case 401, 403, 407: self = .denied(status: response.status.code)
    case 408, 425, 429, 500...599:
      self = .unavailable(
        status: response.status.code, retryAfter: RetryAfter.delay(fields, now: now))
    case 400...499: self = .rejected(status: response.status.code)
    default: self = .invalid(reason: "unexpected status \(response.status.code)")
    }
  }

  private static func judgeWhole(_ fields: HTTPFields) -> ResponseVerdict {
    if let reason = framingFault(fields) { return .invalid(reason: reason) }
    var length: Int64?
    if fields[.transferEncoding] == nil {
      switch contentLength(fields) {
      case .absent: break
      case .malformed: return .invalid(reason: "malformed Content-Length")
      case .bytes(let count): length = count
      }
    }
    let version = ContentVersion(fields, completeLength: length)
    guard !mayBePart(fields, of: version) else {
      return .invalid(reason: "the status of the whole, with the Content-Range of a part")
    }
    return .whole(version)
  }

  /// Whether `Content-Range` names anything but all bytes of the representation `version`.
  ///
  /// The body may then be the part that was requested, sent with a wrong status, or the whole.
  private static func mayBePart(_ fields: HTTPFields, of version: ContentVersion) -> Bool {
    guard fields[fields: .contentRange].first != nil else { return false }
    guard let named = fields.readable(.contentRange).flatMap(ContentRange.init(field:)) else {
      return true
    }
    // The field may count the bytes before the content was coded.
    let length = version.contentCoding == nil ? version.completeLength : nil
    guard let range = named.range else {
      return named.completeLength != length ?? named.completeLength
    }
    guard let complete = named.completeLength ?? length else { return true }
    return range != 0..<complete || complete != length ?? complete
  }

  private static func judgePart(_ fields: HTTPFields, asked: ByteRange?) -> ResponseVerdict {
    guard let asked else { return .invalid(reason: "206 to a request without a range") }
    if let reason = framingFault(fields) { return .invalid(reason: reason) }
    if fields.hasMediaType(startingWith: "multipart/") {
      return .invalid(reason: "multipart/byteranges to a request for one range")
    }
    guard fields[fields: .contentRange].first != nil else {
      return .invalid(reason: "206 without Content-Range")
    }
    guard let contentRange = fields.readable(.contentRange).flatMap(ContentRange.init(field:)),
      let range = contentRange.range
    else { return .invalid(reason: "malformed Content-Range") }
    guard range.lowerBound <= asked.lowerBound, range.upperBound > asked.lowerBound else {
      return .invalid(
        reason: "Content-Range \(range.lowerBound)-\(range.upperBound - 1) does not hold byte "
          + "\(asked.lowerBound), which was asked for")
    }
    if range.lowerBound < asked.lowerBound {
      // A range that is larger than the request, as a server may align it, contains all requested
      // bytes; a range that is merely shifted has a wrong label.
      let reach = min(asked.upperBound, contentRange.completeLength ?? asked.upperBound)
      guard range.upperBound >= reach else {
        return .invalid(reason: "Content-Range does not match the range that was asked for")
      }
    }
    if fields[.transferEncoding] == nil {
      switch contentLength(fields) {
      case .bytes(let length) where length != range.byteCount:
        return .invalid(reason: "Content-Length and Content-Range disagree")
      case .malformed: return .invalid(reason: "malformed Content-Length")
      default: break
      }
    }
    return .part(ContentVersion(fields, completeLength: contentRange.completeLength), range: range)
  }

  /// The fault of a message whose end two fields define differently: it cannot be trusted (RFC 9112
  /// §6.3).
  private static func framingFault(_ fields: HTTPFields) -> String? {
    fields[.transferEncoding] != nil && fields[.contentLength] != nil
      ? "both Transfer-Encoding and Content-Length" : nil
  }

  private enum Length {
    case absent
    case malformed
    case bytes(Int64)
  }

  private static func contentLength(_ fields: HTTPFields) -> Length {
    let values = Set(fields[values: .contentLength])
    guard let value = values.first else { return .absent }
    guard values.count == 1, let length = Int64(digits: value),
      length <= Int64.maximumFileOffset
    else { return .malformed }
    return .bytes(length)
  }
}

extension HTTPFields {
  /// Whether the first answer for the file at `url` looks like a stand-in.
  ///
  /// Examples are an HTML page (such as an error or login page) where the name promises another
  /// type, or a coding that was not requested. Without a known version to compare with, such an
  /// answer is worth a repetition.
  package func isDoubtful(for url: RemoteURL) -> Bool {
    if ContentVersion(self, completeLength: nil).contentCoding != nil { return true }
    guard hasMediaType(startingWith: "text/html") else { return false }
    let path = url.path
    // The page of a directory is HTML, whatever its name holds.
    if path.utf8.last == UInt8(ascii: "/"), url.query == nil { return false }
    let name = path.split(separator: "/").last ?? ""
    guard let dot = name.lastIndex(of: ".") else { return false }
    return !["html", "htm", "xhtml", "php", "asp", "aspx", "jsp", "cgi"].contains(
      name[name.index(after: dot)...].lowercased())
  }
}

extension ContentVersion {
  /// The version that a response's fields describe.
  ///
  /// Validators are compared byte by byte: tags are bytes, and dates must be ASCII. Values that are
  /// too long are ignored.
  package init(_ fields: HTTPFields, completeLength: Int64?) {
    // Latin-1 makes each byte a character, which keeps different values different. For a value that
    // is longer than any coding, the beginning suffices to show that there is one.
    let coding = fields.bytes(of: .contentEncoding).map { bytes in
      Substring(TextDecoding.text(of: bytes.prefix(HTTPFields.readableLimit), charset: .latin1))
        .trimmed.lowercased()
    }
    let date = fields.readable(.lastModified)
    self.init(
      entityTag: fields.bytes(of: .eTag).flatMap { EntityTag(field: $0) },
      lastModified: date?.utf8.allSatisfy { $0 < 0x80 } == true ? date : nil,
      completeLength: completeLength,
      contentCoding: coding == "identity" || coding == "" ? nil : coding)
    dateStrength = Self.dateStrength(fields)
  }

  /// How strong the modification date is, judged by the date of the response itself.
  private static func dateStrength(_ fields: HTTPFields) -> DateStrength {
    guard let modified = fields.readable(.lastModified).flatMap(HTTPDate.secondsSince1970),
      let made = fields.readable(.date).flatMap(HTTPDate.secondsSince1970)
    else { return .undated }
    return made - modified >= 1 ? .strong : .weak
  }
}
