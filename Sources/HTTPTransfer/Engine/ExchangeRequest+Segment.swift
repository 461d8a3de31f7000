internal import HTTPTransferCore
internal import HTTPTypes

extension ExchangeRequest {
  /// Creates a request of a transfer for `range` (nil for the whole), sent to `url`; the user named
  /// that server `server`.
  init(
    _ request: Request, range: ByteRange?, to url: RemoteURL, of server: RemoteURL,
    at location: ResourceLocation, body: BodyReader?
  ) {
    self.init(
      method: request.method, url: url, range: range, fields: request.fields,
      confidentialFields: request.confidentialFields, confidentialOrigin: server.origin,
      maximumRedirects: request.redirects.maximum, connectTimeout: request.connectTimeout)
    userInfo = server.userInfo
    namedOrigin = location.base?.origin
    if location.isSigned, url == location.base { useOwnCredentials() }
    keepsMethodOnRedirect = request.redirects.keepsMethod
    staysInOrigin = request.redirects.staysInOrigin
    authenticatesOnChallenge = request.authenticatesOnChallenge
    if request.decodesContent, fields[.acceptEncoding] == nil,
      confidentialFields[.acceptEncoding] == nil
    {
      fields[.acceptEncoding] = ContentCoding.acceptField
    }
    stallTimeout = request.stallTimeout
    headTimeout = request.stallTimeout
    retryAfterCeiling = request.retryPolicy.retryAfterCeiling
    rateLimit = request.rateLimit
    self.body = body
    if let type = body?.contentType {
      let given = fields[.contentType] ?? confidentialFields[.contentType]
      confidentialFields[.contentType] = nil
      // Only one value is allowed; a form needs its own type, which tells how to parse the body.
      fields[.contentType] = request.body?.isForm == true ? type : given ?? type
    }
  }
}
