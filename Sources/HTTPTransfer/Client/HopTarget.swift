internal import HTTPTransferCore
internal import HTTPTypes

/// What the current hop of an exchange requests, and where redirects and challenges lead.
///
/// A value without I/O.
struct HopTarget {
  private let request: ExchangeRequest
  private(set) var url: RemoteURL
  /// The method and body of the current hop; a redirect may change them to a `GET`.
  private(set) var method: HTTPRequest.Method
  private(set) var body: (any ExchangeBody)?
  /// Whether credentials were sent in response to a 401.
  private var isChallenged = false
  private(set) var redirectCount = 0
  /// The URL of the next hop; nil if the response of this one is the final one.
  private(set) var next: RemoteURL?

  init(_ request: ExchangeRequest) {
    self.request = request
    url = request.url
    method = request.method
    body = request.body
  }

  private static let redirectStatuses: Set<Int> = [301, 302, 303, 307, 308]

  /// Whether the hop goes to the origin to which the request's credentials belong.
  var isAtConfidentialOrigin: Bool { url.origin == request.confidentialOrigin }

  /// The credentials of the hop; nil if none are sent.
  var userInfo: String? {
    let mayAuthenticate = isChallenged || !request.authenticatesOnChallenge
    return isAtConfidentialOrigin && mayAuthenticate ? request.userInfo : nil
  }

  /// Begins a hop.
  mutating func begin() { next = nil }

  /// Goes to the next URL; false if there is none.
  mutating func advance() -> Bool {
    guard let next else { return false }
    url = next
    self.next = nil
    return true
  }

  /// Takes the head of a response, which may lead to another hop.
  ///
  /// - Returns: the target of a redirect; nil for any other head.
  /// - Throws: why a redirect must not be followed.
  mutating func take(_ head: HTTPResponse) throws(ExchangeError) -> RemoteURL? {
    if request.maximumRedirects > 0, Self.redirectStatuses.contains(head.status.code),
      let location = head.headerFields.bytes(of: .location)
    {
      return try follow(location, status: head.status.code)
    }
    if head.status.code == 401, mayAnswerChallenge(head.headerFields) {
      isChallenged = true
      next = url
    }
    return nil
  }

  /// Whether a 401 requests the credentials that were withheld so far.
  private func mayAnswerChallenge(_ fields: HTTPFields) -> Bool {
    request.authenticatesOnChallenge && !isChallenged && request.userInfo != nil
      && isAtConfidentialOrigin
      && fields[fields: .wwwAuthenticate].contains { field in
        // The tokens of other schemes may be long.
        field.withUnsafeBytesOfValue { $0.count <= HTTPFields.readableLimit }
          && field.value.lowercased().contains("basic")
      }
  }

  private mutating func follow(
    _ location: [UInt8], status: Int
  ) throws(ExchangeError) -> RemoteURL {
    redirectCount += 1
    guard redirectCount <= request.maximumRedirects else {
      throw ExchangeError(
        code: .tooManyRedirects, url: url, detail: "\(request.maximumRedirects) were followed")
    }
    guard let text = URLResolver.resolve(location, against: url) else {
      throw ExchangeError(
        code: .malformedResponse, url: url, detail: "the Location field is not a URL")
    }
    guard text.utf8.count <= RemoteURL.foreignByteLimit else {
      throw forbidden("to a URL of more than \(RemoteURL.foreignByteLimit >> 10) KiB")
    }
    let target: RemoteURL
    do {
      target = try RemoteURL(text)
    } catch {
      throw forbidden("\(error)")
    }
    if url.scheme == "https" && target.scheme != "https" {
      throw forbidden("from https to http://\(target.authority)")
    }
    if request.staysInOrigin, target.normalizedOrigin != url.normalizedOrigin {
      throw forbidden("to another server, \(target.origin)")
    }
    next = target
    if status == 303 || (status < 303 && !request.keepsMethodOnRedirect), method != .head {
      method = .get
      body = nil
    }
    return target
  }

  private func forbidden(_ detail: String) -> ExchangeError {
    ExchangeError(code: .forbiddenRedirect, url: url, detail: detail)
  }
}
