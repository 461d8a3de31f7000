/// Messages that several checks of a response share.
package enum ResponseFault {
  package static let otherDocument = "the answer looks like another document"
  package static let hasChanged = "the remote file has changed"
  package static let noValidator = "the response has no validator to compare"
  package static let cutShort = "response cut short"
  package static let ignoredRange = "the server ignored the range (HTTP 200)"

  /// An explanation of a status that refuses a request.
  package static func meaning(ofRefusal status: Int) -> String {
    switch status {
    case 401: ": credentials are missing, or not accepted"
    case 403: ": access is refused"
    case 407: ": the proxy wants other credentials"
    default: ""
    }
  }
}
