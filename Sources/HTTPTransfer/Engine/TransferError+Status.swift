internal import HTTPTransferCore
internal import HTTPTypes

/// The failures that correspond to responses.
extension TransferError {
  /// The failure for a status that is no success.
  init(status head: HTTPResponse, _ url: RemoteURL, isTransient: Bool = false) {
    let status = head.status
    var reason =
      StatusPhrase.text(of: status.code) + ResponseFault.meaning(ofRefusal: status.code)
    let isRedirect = (300..<400).contains(status.code) && head.headerFields[.location] != nil
    if isRedirect { reason += ": redirects are not followed" }
    self.init(
      isRedirect ? .redirect : .status, url, reason, response: head, isTransient: isTransient)
  }

  /// The failure for a final refusal, which may be due to an expired signature.
  init(refusal head: HTTPResponse, _ url: RemoteURL, of request: Request) {
    let error = TransferError(status: head, url)
    let now = timeSinceEpoch()
    guard request.signer == nil, let expiry = request.url.signatureExpiry, .seconds(expiry) <= now
    else {
      self = error
      return
    }
    self.init(
      error.code, url, error.reason + ": the signature of the URL has expired", response: head)
  }

  static func beyondTheEnd(
    _ length: Int64?, _ head: HTTPResponse, _ url: RemoteURL
  ) -> TransferError {
    let reach = length.map { "the file has \($0) bytes only" } ?? "the file is shorter"
    return TransferError(.status, url, "the range is beyond the end: \(reach)", response: head)
  }

  /// A copy that also names the failures of other mirrors.
  func naming(_ others: String?) -> TransferError {
    guard let others else { return self }
    return TransferError(
      code, url, "\(reason); other mirrors: \(others)", response: response, errno: errno)
  }

  /// Whether no server answered at the URL, or it cannot serve now: if redirects have led there,
  /// they may lead elsewhere by now.
  var mayHaveMoved: Bool {
    switch code {
    case .unresolvedHost, .connectionRefused, .connectionLost, .timedOut: true
    case .status: status.map { $0 >= 500 } ?? false
    default: false
    }
  }

  /// What a user can do about it; nil if there is nothing, or if the reason is enough.
  package var remedy: FailureRemedy? {
    switch (code, status) {
    case (.tls, _): .ofTLS(reason)
    case (.status, 404), (.status, 410): .url
    // The signature of a URL takes the place of credentials.
    case (.status, 401), (.status, 403): url.signatureExpiry == nil ? .credentials : nil
    default: nil
    }
  }

  /// Whether another server may succeed.
  var isOfServer: Bool {
    switch code {
    case .unresolvedHost, .connectionRefused, .connectionLost, .timedOut, .tls, .redirect, .status,
      .invalidResponse, .changed, .other:
      true
    case .cancelled, .checksumMismatch, .tooLarge, .destination, .destinationExists,
      .destinationInUse, .unreadableBody, .invalidRequest, .outOfResources:
      false
    }
  }
}
