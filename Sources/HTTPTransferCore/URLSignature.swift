/// The signature in a URL's query, which grants access for a while and does not identify the
/// resource.
///
/// Recognised by sets of parameters that only signatures combine; `Expires=` or `st=` alone is not
/// a signature. Names are compared without case.
struct URLSignature {
  /// When the signature expires, in seconds since 1970; nil if unknown.
  let expiry: Int64?
  /// The names of its parameters, in lower case.
  let names: Set<String>

  /// Finds the signature in a query; nil for none.
  init?(query: String) {
    // Most queries have none, and a list may have a million.
    guard Self.mayHold(query) else { return nil }
    var values: [String: Substring] = [:]
    for parameter in query.split(separator: "&") {
      let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      values[parts[0].lowercased()] = parts.count > 1 ? parts[1] : ""
    }
    let found = Self.schemes.lazy.compactMap { scheme -> (Scheme, Int64?)? in
      guard scheme.marks.allSatisfy({ values[$0]?.isEmpty == false }) else { return nil }
      let expiry = scheme.expiry.seconds(in: values)
      // A name such as `expires` is ambiguous without a plausible value.
      if case .epoch = scheme.expiry, expiry == nil { return nil }
      return (scheme, expiry)
    }
    guard let (scheme, expiry) = found.first else { return nil }
    self.expiry = expiry
    names = scheme.names.union(scheme.marks)
  }

  /// Whether a query contains `sig` or `md5`: each scheme has a name with one of them.
  private static func mayHold(_ query: String) -> Bool {
    var (first, second) = (UInt8(0), UInt8(0))
    for byte in query.utf8 {
      let letter = byte | 0x20
      if letter == UInt8(ascii: "g"), second == UInt8(ascii: "i"), first == UInt8(ascii: "s") {
        return true
      }
      // `md5`: a digit has that bit set already.
      if letter == UInt8(ascii: "5"), second == UInt8(ascii: "d"), first == UInt8(ascii: "m") {
        return true
      }
      (first, second) = (second, letter)
    }
    return false
  }

  /// A scheme of signed URLs.
  private struct Scheme {
    /// The parameters that every URL of the scheme has.
    let marks: [String]
    /// Optional parameters of the signature.
    let names: Set<String>
    let expiry: Expiry
  }

  /// The form of a URL's expiry.
  private enum Expiry {
    /// A moment in seconds since 1970.
    case epoch(String)
    /// A time such as `20260131T235959Z`, and a duration in seconds.
    case interval(from: String, seconds: String)
    /// A time such as `2026-01-31T23:59:59Z`, perhaps percent-encoded, or a date.
    case date(String)
    case unknown

    func seconds(in values: [String: Substring]) -> Int64? {
      switch self {
      case .epoch(let name):
        guard let digits = values[name], (9...11).contains(digits.utf8.count) else { return nil }
        return Int64(digits: digits)
      case .interval(let from, let seconds):
        guard let start = values[from].flatMap({ Self.time($0.utf8.filter { $0 != 0x2D }) }),
          let length = values[seconds].flatMap({ Int64(digits: $0) }), length < 1 << 40
        else { return nil }
        return start + length
      case .date(let name):
        let text = values[name]?.replacing("%3A", with: ":").replacing("%3a", with: ":")
        return text.flatMap { text in
          Self.time(text.utf8.filter { $0 != 0x2D && $0 != UInt8(ascii: ":") })
        }
      case .unknown: return nil
      }
    }

    /// Parses `20260131T235959Z`, also with a shorter time of day or none.
    private static func time(_ bytes: [UInt8]) -> Int64? {
      func number(_ range: Range<Int>) -> Int64? {
        guard range.upperBound <= bytes.count else { return nil }
        return Int64(digits: Substring(decoding: bytes[range], as: UTF8.self))
      }
      guard let year = number(0..<4), let month = number(4..<6), let day = number(6..<8) else {
        return nil
      }
      var clock: [Int64] = [0, 0, 0]
      if bytes.count > 8 {
        // Signatures use only UTC.
        guard bytes[8] == UInt8(ascii: "T"), bytes.last == UInt8(ascii: "Z") else { return nil }
        for (index, start) in [9, 11, 13].enumerated() where start + 2 < bytes.count {
          guard let value = number(start..<(start + 2)) else { return nil }
          clock[index] = value
        }
      }
      return HTTPDate.secondsSince1970(
        year: year, month: Int(month), day: day, hour: clock[0], minute: clock[1],
        second: clock[2])
    }
  }

  /// Version 4 of Amazon's signatures, which others have adopted under their own names.
  private static func fourthVersion(prefix: String, more: Set<String> = []) -> Scheme {
    let names = [
      "algorithm", "date", "expires", "signedheaders", "security-token", "content-sha256",
    ]
    return Scheme(
      marks: ["\(prefix)-credential", "\(prefix)-signature"],
      names: Set(names.map { "\(prefix)-\($0)" }).union(more),
      expiry: .interval(from: "\(prefix)-date", seconds: "\(prefix)-expires"))
  }

  private static let azureNames: Set<String> = [
    "sv", "ss", "srt", "st", "se", "sp", "sr", "sip", "spr", "si", "sdd", "skoid", "sktid", "skt",
    "ske", "sks", "skv", "saoid", "suoid", "scid", "ses",
  ]

  private static let schemes: [Scheme] = [
    fourthVersion(prefix: "x-amz"),
    fourthVersion(prefix: "x-goog"),
    fourthVersion(
      prefix: "x-oss", more: ["x-oss-signature-version", "x-oss-additional-headers"]),
    // CloudFront with a custom policy, which contains the time.
    Scheme(
      marks: ["policy", "signature", "key-pair-id"], names: ["hash-algorithm"], expiry: .unknown),
    // CloudFront, version 2 of Amazon's signatures, Google's, OSS, and many custom schemes.
    Scheme(
      marks: ["signature", "expires"],
      names: [
        "key-pair-id", "hash-algorithm", "awsaccesskeyid", "googleaccessid", "ossaccesskeyid",
        "x-amz-security-token", "security-token",
      ], expiry: .epoch("expires")),
    // nginx's secure_link as in its documentation.
    Scheme(marks: ["md5", "expires"], names: [], expiry: .epoch("expires")),
    // Azure's shared access signatures: with a time, or with a policy stored on the server.
    Scheme(marks: ["sig", "se"], names: azureNames, expiry: .date("se")),
    Scheme(marks: ["sig", "sv", "si"], names: azureNames, expiry: .unknown),
  ]
}

extension RemoteURL {
  /// The URL without userinfo and signature: equal for all signed URLs of one resource.
  ///
  /// It identifies the resource but may not give access to it.
  package var withoutSignature: String {
    guard let query, let signature = URLSignature(query: query) else { return withoutUserInfo }
    let kept = query.split(separator: "&", omittingEmptySubsequences: false).filter {
      !signature.names.contains($0.prefix { $0 != "=" }.lowercased())
    }
    let whole = withoutUserInfo
    let base = whole.prefix { $0 != "?" }
    return kept.isEmpty ? String(base) : base + "?" + kept.joined(separator: "&")
  }

  /// When the URL's signature expires, in seconds since 1970; nil if unknown.
  package var signatureExpiry: Int64? { query.flatMap { URLSignature(query: $0) }?.expiry }
}
