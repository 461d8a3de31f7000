internal import HTTPTransfer
internal import HTTPTransferCore

/// What follows from the end of a request, and from an answer that is not what was asked for.
extension VersionState {
  /// The server has answered a range with the whole representation.
  ///
  /// - Returns: whether to take the whole from now on; false where the range is to be tried again,
  ///   because ranges have worked before and this may be one server's fault of many.
  mutating func rangeIgnored(_ id: SegmentID, into actions: inout VersionActions) -> Bool {
    ignoredRangeCount += 1
    let haveRangesWorked =
      !extents.isEmpty || segments.contains { $0.handedOverEnd > $0.start }
    guard !haveRangesWorked || ignoredRangeCount > FileSettings.doubtfulAnswerLimit, !isSequential
    else { return false }
    isSequential = true
    // One stream brings all; the others would bring the same.
    actions.cancels += segments.filter { $0.id != id }.compactMap(\.transfer)
    removeSegment(id)
    return true
  }

  /// The server answers ranges with the whole: there is one way only to read it.
  mutating func markSequential() { isSequential = true }

  /// The server has answered a range with that range: an earlier answer with the whole was an exception.
  ///
  /// A stream that is under way goes on as it was begun.
  mutating func markRanged() {
    guard !isStreaming else { return }
    isSequential = false
    ignoredRangeCount = 0
  }

  /// A request brought all that it was to bring, as its server says.
  mutating func finished(
    _ id: SegmentID, policy: RetryPolicy, random: Double, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    if endSegment(id) {
      retryLater(
        after: FileError(.invalidResponse, "the response has brought next to nothing"),
        retryAfter: nil, policy: policy, random: random, now: now, into: &actions)
    }
    ignoredRangeCount = 0
    plan(now: now, into: &actions)
  }

  /// A request was ended on purpose, or, after `failure`, is to be sent to another server: what it was to bring
  /// is planned again.
  mutating func dropped(
    _ id: SegmentID, after failure: FileError? = nil, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    if let failure { lastFailure = failure }
    removeSegment(id)
    plan(now: now, into: &actions)
  }

  /// A request has failed in a way that may pass.
  mutating func failed(
    _ id: SegmentID, _ error: FileError, retryAfter: Duration?, policy: RetryPolicy,
    random: Double, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    _ = endSegment(id)
    retryLater(
      after: error, retryAfter: retryAfter, policy: policy, random: random, now: now,
      into: &actions)
  }

  /// A request has failed in a way that does not pass: so do all reads that wait.
  mutating func failedForGood(
    _ id: SegmentID, _ error: FileError, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    // What this machine could not do is not held against the server.
    if error.isOfServer { _ = endSegment(id) } else { removeSegment(id) }
    failParked(error, now: now, into: &actions)
  }

  /// A request has met that nobody knows where the bytes are: the source is asked, and meanwhile no request is
  /// sent.
  mutating func awaitLocation(_ id: SegmentID) {
    _ = endSegment(id)
    isAwaitingLocation = true
  }

  /// The source has been asked where to go; `error` is why it has not said so.
  mutating func located(
    _ error: FileError?, policy: RetryPolicy, random: Double, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    isAwaitingLocation = false
    if let error {
      switch error.code {
      case .missing, .denied, .refused: failParked(error, now: now, into: &actions)
      case .unsigned:
        retryLater(
          after: error, retryAfter: nil, policy: policy, random: random, now: now, into: &actions)
      // Other failures are met again by the requests to the source, and retried.
      default: break
      }
    }
    plan(now: now, into: &actions)
  }
}
