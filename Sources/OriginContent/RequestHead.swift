/// The head of an HTTP/1 request, split into the parts that a plan needs (RFC 9112 §2–3).
package struct RequestHead: Equatable, Sendable {
  package var method: String

  /// The request target as sent.
  package var target: String

  /// The percent-decoded path of the target.
  package var path: String

  /// The percent-decoded parameters of the target's query; a later parameter replaces an earlier
  /// one of the same name.
  package var query: [String: String]

  /// The fields by lower-case name; several of one name are joined by `, `.
  package var fields: [String: String]

  /// Whether the request uses HTTP/1.1; otherwise it uses HTTP/1.0.
  package var isHTTP11: Bool

  /// Why a request head cannot be used; the response is 400.
  package struct ParseError: Error, Equatable, Sendable, CustomStringConvertible {
    package let description: String
  }

  package init(
    method: String = "GET", target: String, fields: [String: String] = [:], isHTTP11: Bool = true
  ) throws(ParseError) {
    self.method = method
    self.target = target
    self.fields = fields
    self.isHTTP11 = isHTTP11
    var rest = target[...]
    if let hash = rest.firstIndex(of: "#") { rest = rest[..<hash] }
    // The absolute form, as a client sends it to a proxy.
    if rest.hasPrefix("http://") {
      let authority = rest.dropFirst("http://".count)
      rest = authority.firstIndex(of: "/").map { authority[$0...] } ?? "/"
    }
    let halves = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    guard let encodedPath = halves.first, let path = ByteText.percentDecoded(encodedPath) else {
      throw ParseError(description: "malformed percent-encoding in the path")
    }
    self.path = path
    query = [:]
    guard halves.count == 2 else { return }
    for item in halves[1].split(separator: "&") {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = ByteText.percentDecoded(pair[0]),
        let value = ByteText.percentDecoded(pair.count == 2 ? pair[1] : "1")
      else { throw ParseError(description: "malformed percent-encoding in the query") }
      query[name] = value
    }
  }

  /// Parses a head: the request line and the field lines, without the empty line that ends it.
  ///
  /// Bytes that are not UTF-8 are replaced.
  package init(parsing bytes: some Collection<UInt8>) throws(ParseError) {
    var lines = bytes.split(separator: 0x0A).map { line in
      String(decoding: line.last == 0x0D ? line.dropLast() : line[...], as: UTF8.self)
    }
    guard !lines.isEmpty else { throw ParseError(description: "empty request") }
    let words = lines.removeFirst().split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, !words[0].isEmpty, !words[1].isEmpty else {
      throw ParseError(description: "malformed request line")
    }
    guard words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0" else {
      throw ParseError(description: "unsupported HTTP version")
    }
    var fields: [String: String] = [:]
    for line in lines {
      guard let colon = line.firstIndex(of: ":"), colon > line.startIndex else {
        throw ParseError(description: "malformed field line")
      }
      let name = line[..<colon].lowercased()
      guard name.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
        throw ParseError(description: "malformed field name")
      }
      let value = String(ByteText.trimmed(line[line.index(after: colon)...]))
      fields[name] = fields[name].map { "\($0), \(value)" } ?? value
    }
    try self.init(
      method: String(words[0]), target: String(words[1]), fields: fields,
      isHTTP11: words[2] == "HTTP/1.1")
  }

  /// Whether the client allows the connection to stay open after the response (RFC 9112 §9.3).
  package var keepsConnection: Bool {
    let options = (fields["connection"] ?? "").lowercased()
    return isHTTP11 ? !options.contains("close") : options.contains("keep-alive")
  }

  /// The declared length of the request's body in bytes; nil if it is not declared or malformed.
  package var contentLength: Int64? { fields["content-length"].flatMap { ByteText.decimal($0) } }

  /// The rule that determines the end of a request's body (RFC 9112 §6.3).
  package enum BodyFraming: Equatable, Sendable {
    /// This many bytes; 0 if no length is declared.
    case length(Int64)
    case chunked
    /// The end of the body is unknown.
    case unknown
  }

  /// How the body is framed; chunks override a length.
  package var bodyFraming: BodyFraming {
    if let coding = fields["transfer-encoding"] {
      return coding.lowercased() == "chunked" && isHTTP11 ? .chunked : .unknown
    }
    guard fields["content-length"] != nil else { return .length(0) }
    return contentLength.map { .length($0) } ?? .unknown
  }

  /// Whether the client waits for a response before it sends the body (RFC 9110 §10.1.1).
  package var expectsContinue: Bool {
    isHTTP11 && hasBody && fields["expect"]?.lowercased() == "100-continue"
  }

  /// Whether a body follows the head.
  package var hasBody: Bool {
    fields["transfer-encoding"] != nil || (fields["content-length"].map { $0 != "0" } ?? false)
  }
}
