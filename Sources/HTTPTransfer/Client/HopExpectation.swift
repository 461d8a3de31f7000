internal import HTTPTypes

/// What the server of one hop has made of `Expect: 100-continue`.
///
/// A value without I/O; each hop begins with a new one.
struct HopExpectation {
  /// The head of the 417 after which libcurl sends the request without an expectation.
  private var refusal: HTTPResponse?
  /// Whether the request was sent again since then.
  private var isResent = false

  /// A 417 has come to a request with a body.
  ///
  /// - Returns: whether libcurl may send the request again, so that the next head counts.
  mutating func refuse(by head: HTTPResponse) -> Bool {
    guard refusal == nil else { return false }
    refusal = head
    return true
  }

  /// libcurl sends the request.
  ///
  /// - Returns: whether it was refused before, so that what follows is the answer.
  mutating func noteRequest() -> Bool {
    isResent = refusal != nil
    return isResent
  }

  /// The 417 that is the answer if no other head has come.
  ///
  /// It says nothing of a request that was sent again: the server may have carried that out.
  var lastWord: HTTPResponse? { isResent ? nil : refusal }
}
