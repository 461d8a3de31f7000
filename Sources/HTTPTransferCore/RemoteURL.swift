/// An absolute `http` or `https` URL, split into its components; not normalised.
///
/// The text may contain credentials (userinfo) and secrets (query): use ``redacted`` for display,
/// logs and storage.
public struct RemoteURL: Hashable, Sendable, CustomStringConvertible {
  /// The URL as given, without its fragment.
  public let text: String

  /// The most bytes of a URL that a server supplies, which is kept for each file; servers accept
  /// about as much.
  package static let foreignByteLimit = 8 << 10

  /// Why a text is not a URL that httpfs can use.
  public enum ParseError: Error, Equatable, Sendable, CustomStringConvertible {
    case missingScheme
    case unsupportedScheme(String)
    case missingHost
    case invalidHost
    case invalidPort
    case forbiddenCharacter

    public var description: String {
      switch self {
      case .missingScheme: "no scheme; write http:// or https:// before it"
      case .unsupportedScheme(let scheme):
        "scheme '\(scheme)' is not supported; " + Self.remedy(for: scheme)
      case .missingHost: "no host after the scheme"
      case .invalidHost: "the host holds a character that no host name has"
      case .invalidPort: "the port is not a number from 1 to 65535"
      case .forbiddenCharacter: "a space or control character; percent-encode it"
      }
    }

    private static func remedy(for scheme: String) -> String {
      switch scheme {
      case "s3", "gs", "az", "abfs", "abfss":
        "use the https URL of the object, a presigned one if it is private"
      case "hf": "use the https URL that the page of the file offers for download"
      default: "use http or https"
      }
    }
  }

  /// The positions of the components in a checked URL.
  ///
  /// Computed on each access and not stored: a list may have a million URLs, few of which are
  /// inspected.
  private struct Places {
    let schemeEnd: String.Index
    /// After `://`.
    let authorityStart: String.Index
    let hostStart: String.Index
    let authorityEnd: String.Index
    let pathEnd: String.Index

    init(in text: String) {
      let bytes = text.utf8
      let end = bytes.endIndex
      schemeEnd = bytes.firstIndex(of: UInt8(ascii: ":")) ?? end
      authorityStart = bytes.index(schemeEnd, offsetBy: 3, limitedBy: end) ?? end
      authorityEnd =
        bytes[authorityStart...].firstIndex {
          $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?")
        } ?? end
      let at = bytes[authorityStart..<authorityEnd].lastIndex(of: UInt8(ascii: "@"))
      hostStart = at.map { bytes.index(after: $0) } ?? authorityStart
      pathEnd = bytes[authorityEnd...].firstIndex(of: UInt8(ascii: "?")) ?? end
    }
  }

  private var places: Places { Places(in: text) }

  /// Splits `string` at the delimiters of RFC 3986 §3.
  ///
  /// Percent-encoding is left unchanged, because a server may distinguish URLs that a normaliser
  /// makes equal.
  public init(_ string: some StringProtocol) throws(ParseError) {
    var bytes = Array(string.utf8)
    if let hash = bytes.firstIndex(of: UInt8(ascii: "#")) { bytes.removeSubrange(hash...) }
    guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
      throw .forbiddenCharacter
    }
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
      bytes[colon...].starts(with: "://".utf8), Self.isScheme(bytes[..<colon])
    else { throw .missingScheme }
    let scheme = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
    guard scheme == "http" || scheme == "https" else { throw .unsupportedScheme(scheme) }
    let authorityStart = colon + 3
    let authorityEnd =
      bytes[authorityStart...].firstIndex(where: {
        $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?")
      }) ?? bytes.count
    let hostStart =
      bytes[authorityStart..<authorityEnd].lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 }
      ?? authorityStart
    var hostEnd = authorityEnd
    let host = bytes[hostStart..<authorityEnd]
    // A colon inside brackets belongs to an IPv6 address.
    let portSearchStart = host.lastIndex(of: UInt8(ascii: "]")) ?? host.startIndex
    if let portColon = host[portSearchStart...].firstIndex(of: UInt8(ascii: ":")) {
      let digits = host[(portColon + 1)...]
      hostEnd = portColon
      if !digits.isEmpty {
        guard let port = Int(String(decoding: digits, as: UTF8.self)), (1...65535).contains(port),
          digits.allSatisfy({ (0x30...0x39).contains($0) })
        else { throw .invalidPort }
      }
    }
    guard hostEnd > hostStart else { throw .missingHost }
    guard Self.isHost(bytes[hostStart..<hostEnd]) else { throw .invalidHost }
    self.text = String(decoding: bytes, as: UTF8.self)
  }

  /// Whether the bytes can be a scheme (RFC 3986 §3.1).
  ///
  /// Errors do not show other bytes: they may be a password.
  private static func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard let first = bytes.first, bytes.count <= 32 else { return false }
    return (0x61...0x7A).contains(first | 0x20)
      && bytes.allSatisfy {
        (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0)
          || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
      }
  }

  /// Whether the bytes can be a host.
  ///
  /// Accepts the characters of RFC 3986 §3.2.2, and those beyond ASCII for internationalised names.
  /// Brackets must enclose an IPv6 address.
  private static func isHost(_ bytes: ArraySlice<UInt8>) -> Bool {
    var name = bytes
    if name.first == UInt8(ascii: "[") {
      guard name.count > 2, name.last == UInt8(ascii: "]") else { return false }
      name = name.dropFirst().dropLast()
      guard name.contains(UInt8(ascii: ":")) else { return false }
    } else if name.contains(UInt8(ascii: ":")) {
      return false
    }
    return name.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"),
        UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"),
        UInt8(ascii: "}"), UInt8(ascii: "["), UInt8(ascii: "]"):
        false
      default: true
      }
    }
  }

  /// `http` or `https`, in lower case.
  public var scheme: String { text[..<places.schemeEnd].lowercased() }

  /// The host and, if given, the port: `example.org:8080`, in lower case.
  public var authority: String {
    let places = places
    return text[places.hostStart..<places.authorityEnd].lowercased()
  }

  /// Scheme and authority: the scope of credentials and connections.
  public var origin: String { "\(scheme)://\(authority)" }

  /// The origin without a default port: equal for URLs of the same server.
  package var normalizedOrigin: String {
    let standardPort = scheme == "https" ? ":443" : ":80"
    var text = origin
    // An IPv6 address ends with its bracket, so its own colons are not taken for that of a port.
    if text.hasSuffix(standardPort) {
      text.removeLast(standardPort.count)
    } else if text.hasSuffix(":") {
      text.removeLast()
    }
    return text
  }

  /// The host without brackets, in lower case.
  package var host: String {
    var text = Substring(authority)
    if let bracket = text.lastIndex(of: "]") {
      text = text[..<bracket].dropFirst()
    } else if let colon = text.lastIndex(of: ":") {
      text = text[..<colon]
    }
    return String(text)
  }

  /// The path, percent-encoded as given; empty if the URL ends with its authority.
  public var path: String {
    let places = places
    return String(text[places.authorityEnd..<places.pathEnd])
  }

  /// The query without its question mark; nil for none.
  public var query: String? {
    let mark = places.pathEnd
    return mark < text.endIndex ? String(text[text.utf8.index(after: mark)...]) : nil
  }

  /// The URL of another path on the same server, without query.
  ///
  /// Returns nil if `path` is not a valid percent-encoded path with a leading slash.
  package func replacingPath(_ path: String) -> RemoteURL? {
    guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(UInt8(ascii: "?")) else {
      return nil
    }
    return try? RemoteURL(String(text[..<places.authorityEnd]) + path)
  }

  /// `user` or `user:password` before the host, percent-encoded as given; nil for none.
  public var userInfo: String? {
    let places = places
    guard places.hostStart > places.authorityStart else { return nil }
    return String(text[places.authorityStart..<text.utf8.index(before: places.hostStart)])
  }

  /// The URL with other credentials, which are percent-encoded here; nil if that makes no valid
  /// URL.
  package func withUserInfo(user: String, password: String) -> RemoteURL? {
    let userInfo = Self.percentEncoded(user) + ":" + Self.percentEncoded(password)
    let places = places
    return try? RemoteURL(
      String(text[..<places.authorityStart]) + userInfo + "@" + text[places.hostStart...])
  }

  /// Encodes all but the unreserved characters of RFC 3986 §2.3.
  private static func percentEncoded(_ text: String) -> String {
    var encoded: [UInt8] = []
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        encoded.append(byte)
      default:
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  /// The URL without userinfo, as used in requests.
  public var withoutUserInfo: String {
    let places = places
    guard places.hostStart > places.authorityStart else { return text }
    return String(text[..<places.authorityStart]) + String(text[places.hostStart...])
  }

  /// The URL without userinfo and with every query value hidden: safe to show, log and store.
  public var redacted: String {
    let places = places
    let base =
      String(text[..<places.authorityStart]) + String(text[places.hostStart..<places.pathEnd])
    return places.pathEnd == text.endIndex ? base : base + "?…"
  }

  public var description: String { redacted }

  /// Compares bytes: Swift considers some strings of different bytes equal, but servers do not.
  public static func == (one: RemoteURL, other: RemoteURL) -> Bool {
    one.text == other.text && one.text.utf8.elementsEqual(other.text.utf8)
  }
}
