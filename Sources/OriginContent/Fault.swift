/// The faults of responses; the raw value is the name in queries and scripts.
package enum Fault: String, CaseIterable, Sendable {
  // Faults of a response to a range request; they do not occur without one.
  case ignoreRange = "ignore-range"
  case wrongContentRange = "wrong-content-range"
  case missingContentRange = "missing-content-range"
  case earlierRange = "earlier-range"
  case empty206 = "empty-206"
  case multipart

  // Faults of a body; they do not occur if no body is sent.
  case shortBody = "short-body"
  case truncate
  case stall
  case reset
  case extraBytes = "extra-bytes"
  case lengthAndChunked = "length-and-chunked"

  // Faults while reading a request's body; they do not occur for a request without one.
  case uploadReset = "upload-reset"
  case uploadStall = "upload-stall"
  case uploadEarlyResponse = "upload-early-response"

  // Faults of any response.
  case stallHead = "stall-head"
  case etagChange = "etag-change"
  case status
  case redirect
  case redirectLoop = "redirect-loop"
  case html200 = "html-200"
  case gzip
  case headerBomb = "header-bomb"
  case silentClose = "silent-close"

  /// Whether it concerns only the response to a range request.
  var needsRange: Bool {
    switch self {
    case .ignoreRange, .wrongContentRange, .missingContentRange, .earlierRange, .empty206,
      .multipart:
      true
    default: false
    }
  }

  /// Whether it concerns only the reading of a request's body.
  var needsUpload: Bool {
    switch self {
    case .uploadReset, .uploadStall, .uploadEarlyResponse: true
    default: false
    }
  }

  /// Whether it concerns only a response with a body.
  var needsBody: Bool {
    switch self {
    case .shortBody, .truncate, .stall, .reset, .extraBytes, .lengthAndChunked, .gzip: true
    default: false
    }
  }
}
