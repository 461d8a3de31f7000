internal import HTTPTypes

/// How the server of one hop has reacted to `Expect: 100-continue`.
///
/// A value without I/O; each hop begins with a new one.
struct HopExpectation {
  /// The head of the 417 after which libcurl sends the request without an expectation.
  private var refusal: HTTPResponse?
  /// Whether the request was sent again after it.
  private var isResent = false

  /// Records a 417 in response to a request with a body.
  ///
  /// - Returns: whether libcurl may send the request again, so that the next head counts.
  mutating func refuse(by head: HTTPResponse) -> Bool {
    guard refusal == nil else { return false }
    refusal = head
    return true
  }

  /// Records that libcurl sends the request.
  ///
  /// - Returns: whether it was refused before, so that the next head is the answer.
  mutating func recordRequest() -> Bool {
    isResent = refusal != nil
    return isResent
  }

  /// The 417, which is the answer if no other head follows.
  ///
  /// Nil if the request was sent again, because the server may have carried that out.
  var lastWord: HTTPResponse? { isResent ? nil : refusal }
}
