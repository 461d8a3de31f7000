/// How to serve a resource: every parameter of a query or a rule, with its type.
package struct ResponseParameters: Equatable, Sendable {
  /// Which validators a response carries.
  package enum ValidatorPolicy: String, Sendable {
    /// A strong entity tag and a modification date.
    case both
    /// A strong entity tag only.
    case etag
    /// A weak entity tag only.
    case weak
    /// A modification date only.
    case date
    case none
  }

  /// The time at which a request without the right credentials is refused.
  package enum AuthenticationMode: String, Sendable {
    /// Before an upload's body is sent, if the client waits for permission.
    case early
    /// After the whole body of an upload.
    case late
  }

  /// An invalid value; the response is 400.
  package struct ValueError: Error, Equatable, Sendable, CustomStringConvertible {
    package let name: String
    package let value: String
    package let expected: String

    package var description: String { "parameter '\(name)' is '\(value)', expected \(expected)" }
  }

  // What is served.
  /// The complete length in bytes of generated content.
  package var length: Int64 = 1 << 20
  /// The seed of generated content; nil for the hash of the name.
  package var seed: UInt64?
  package var version: UInt64 = 1
  /// The `Content-Type`; nil for `application/octet-stream`.
  package var contentType: String?

  // How fast.
  /// The delay before each response head, in milliseconds.
  package var latency: Int64 = 0
  /// A further delay before the first response head of a connection, in milliseconds.
  package var connectLatency: Int64 = 0
  /// The cap of body bytes per second on one connection; nil for none.
  package var rate: Int64?
  /// The cap of body bytes per second over all connections that have it; nil for none.
  package var totalRate: Int64?

  /// The cap of bytes per second that are read from a request's body; nil for none.
  package var uploadRate: Int64?

  // In which form.
  package var validators = ValidatorPolicy.both
  /// Whether every other response carries another entity tag.
  package var flipsEntityTag = false
  /// Whether ranges are honoured; nil honours them if the length is declared.
  package var ranges: Bool?
  package var isChunked = false
  package var isCloseDelimited = false
  /// The coding of the whole for clients that accept it; nil for none.
  package var coding: ContentCoding?
  /// Whether several ranges at once are answered with `multipart/byteranges`.
  package var sendsMultipart = false
  package var contentDisposition: String?
  /// The status of an interim response, 100...199 except 101; nil for none.
  package var interimStatus: Int?
  /// Whether the response to an upload is its own body.
  package var echoesUpload = false

  // For which clients.
  /// The credentials that a request must have, `USER:PASSWORD`; nil for none.
  package var credentials: String?
  package var authenticationMode = AuthenticationMode.early
  /// A cookie that each response sets, `NAME=VALUE`; nil for none.
  package var cookie: String?
  /// The cookie that a request must have, `NAME=VALUE`; nil for none.
  package var requiredCookie: String?
  /// Whether a request must have a signature that has not expired.
  package var requiresSignature = false
  /// How long a link of `/signed/` is valid, in seconds.
  package var lifetime: Int64 = 3

  // With which fault.
  package var fault: Fault?
  /// The position of the fault in the body, in bytes sent; nil for half-way.
  package var faultAt: Int64?
  /// How many responses have the fault; nil for no limit.
  package var faultCount: Int64?
  /// The number (from 1) of the first request of the resource that can have the fault.
  package var faultFrom: Int64 = 1
  /// Only requests for at least one of these bytes of the representation have the fault.
  package var faultRange: Range<Int64>?
  /// The duration of a stall in milliseconds; nil for "until the client disconnects".
  package var stallDuration: Int64?
  /// The status of ``Fault/status`` and ``Fault/uploadEarlyResponse``; nil for their defaults.
  package var status: Int?
  package var retryAfter: String?
  package var redirect: String?
  package var redirectStatus = 302

  /// The names that a query or a rule can use.
  package static let names: Set<String> = [
    "length", "seed", "version", "content-type", "latency", "connect-latency", "rate",
    "total-rate", "validators", "etag-flip", "ranges", "chunked", "close-delimited", "fault",
    "fault-at", "fault-count", "fault-from", "fault-range", "stall-seconds", "status",
    "retry-after", "redirect", "redirect-status", "upload-rate", "coding", "multipart",
    "content-disposition", "interim", "echo", "auth", "auth-mode", "set-cookie", "require-cookie",
    "require-signature", "lifetime",
  ]

  package init() {}

  /// Reads parameters by name.
  ///
  /// Names that are not in ``names`` are ignored, because a URL may have other parameters, such as
  /// a signature.
  package init(values: [String: String]) throws(ValueError) {
    let source = Values(values)
    length = try source.byteCount("length") ?? length
    seed = try source.number("seed")
    version = try source.number("version") ?? version
    contentType = try source.fieldValue("content-type")
    latency = try source.milliseconds("latency") ?? 0
    connectLatency = try source.milliseconds("connect-latency") ?? 0
    rate = try source.positiveByteCount("rate")
    totalRate = try source.positiveByteCount("total-rate")
    validators =
      try source.value("validators", expected: "both, etag, weak, date or none") {
        ValidatorPolicy(rawValue: $0)
      } ?? .both
    flipsEntityTag = try source.flag("etag-flip") ?? false
    ranges = try source.flag("ranges")
    isChunked = try source.flag("chunked") ?? false
    isCloseDelimited = try source.flag("close-delimited") ?? false
    try readForm(source)
    try readAccess(source)
    faultAt = try source.byteCount("fault-at")
    faultCount = try source.byteCount("fault-count")
    faultRange = try source.range("fault-range")
    stallDuration = try source.seconds("stall-seconds")
    retryAfter = try source.fieldValue("retry-after")
    redirect = try source.fieldValue("redirect")
    status = try source.statusCode("status", 200...599)
    redirectStatus = try source.statusCode("redirect-status", 300...399) ?? redirectStatus
    fault = try source.value("fault", expected: "the name of a fault") { Fault(rawValue: $0) }
    // `status=404` and `redirect=/x` imply their faults without `fault=`.
    if fault == nil, values["fault"] == nil {
      if status != nil { fault = .status } else if redirect != nil { fault = .redirect }
    }
    if fault == .redirect, redirect == nil {
      throw ValueError(name: "redirect", value: "", expected: "a URL or a path")
    }
    if coding != nil || sendsMultipart || fault != nil, length > ContentCoding.contentByteLimit {
      throw ValueError(
        name: "length", value: String(length),
        expected: "at most 2^60 if coded, in parts or with a fault")
    }
    // A change requires an earlier request.
    faultFrom = try source.byteCount("fault-from") ?? (fault == .etagChange ? 2 : 1)
  }

  /// The parameters of the form of a response, and of uploads.
  private mutating func readForm(_ source: Values) throws(ValueError) {
    coding = try source.value("coding", expected: "gzip or deflate") {
      ContentCoding(rawValue: $0)
    }
    sendsMultipart = try source.flag("multipart") ?? false
    contentDisposition = try source.fieldValue("content-disposition")
    interimStatus = try source.value("interim", expected: "100 to 199, but not 101") { text in
      // 101 would switch the connection to another protocol.
      Int(text).flatMap { (100...199).contains($0) && $0 != 101 ? $0 : nil }
    }
    uploadRate = try source.positiveByteCount("upload-rate")
    echoesUpload = try source.flag("echo") ?? false
  }

  private mutating func readAccess(_ source: Values) throws(ValueError) {
    credentials = try source.value("auth", expected: "USER:PASSWORD") {
      $0.contains(":") ? $0 : nil
    }
    authenticationMode =
      try source.value("auth-mode", expected: "early or late") {
        AuthenticationMode(rawValue: $0)
      } ?? .early
    cookie = try source.cookie("set-cookie")
    requiredCookie = try source.cookie("require-cookie")
    requiresSignature = try source.flag("require-signature") ?? false
    lifetime =
      try source.value("lifetime", expected: "seconds, at most a day") { text in
        ByteText.decimal(text).flatMap { (0...86_400).contains($0) ? $0 : nil }
      } ?? lifetime
  }

  /// The values by name, with one reader per type.
  private struct Values {
    private let values: [String: String]

    init(_ values: [String: String]) { self.values = values }

    func value<T>(
      _ name: String, expected: String, _ parse: (String) -> T?
    ) throws(ValueError) -> T? {
      guard let text = values[name] else { return nil }
      guard let value = parse(text) else {
        throw ValueError(name: name, value: text, expected: expected)
      }
      return value
    }

    func byteCount(_ name: String) throws(ValueError) -> Int64? {
      try value(name, expected: "a number, with k, m or g for powers of 1024") {
        ByteText.byteCount($0)
      }
    }

    func positiveByteCount(_ name: String) throws(ValueError) -> Int64? {
      try value(name, expected: "a number above 0, with k, m or g for powers of 1024") {
        ByteText.byteCount($0).flatMap { $0 > 0 ? $0 : nil }
      }
    }

    func number(_ name: String) throws(ValueError) -> UInt64? {
      try value(name, expected: "a number of 64 bits, decimal or 0x…") { text in
        text.hasPrefix("0x") ? UInt64(text.dropFirst(2), radix: 16) : UInt64(text)
      }
    }

    func milliseconds(_ name: String) throws(ValueError) -> Int64? {
      try value(name, expected: "milliseconds, at most a day") { text in
        ByteText.decimal(text).flatMap { $0 <= 86_400_000 ? $0 : nil }
      }
    }

    func seconds(_ name: String) throws(ValueError) -> Int64? {
      try value(name, expected: "seconds, at most a day") { text in
        Double(text).flatMap { (0...86_400).contains($0) ? Int64($0 * 1000) : nil }
      }
    }

    func flag(_ name: String) throws(ValueError) -> Bool? {
      try value(name, expected: "yes or no") { text in
        switch text {
        case "1", "yes", "true": true
        case "0", "no", "false": false
        default: nil
        }
      }
    }

    func statusCode(_ name: String, _ allowed: ClosedRange<Int>) throws(ValueError) -> Int? {
      try value(name, expected: "\(allowed.lowerBound) to \(allowed.upperBound)") { text in
        Int(text).flatMap { allowed.contains($0) ? $0 : nil }
      }
    }

    func range(_ name: String) throws(ValueError) -> Range<Int64>? {
      try value(name, expected: "FIRST-LAST") { ByteText.range($0) }
    }

    /// A pair as in a `Cookie` field; attributes are not part of it.
    func cookie(_ name: String) throws(ValueError) -> String? {
      try value(name, expected: "NAME=VALUE without blanks, commas and semicolons") { text in
        let isPair = text.dropFirst().contains("=") && !text.hasPrefix("=")
        let isClean = text.utf8.allSatisfy {
          (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",")
        }
        return isPair && isClean ? text : nil
      }
    }

    /// A text for a response's field: without control characters, it stays one field.
    func fieldValue(_ name: String) throws(ValueError) -> String? {
      try value(name, expected: "text without control characters") { text in
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } ? text : nil
      }
    }
  }
}
