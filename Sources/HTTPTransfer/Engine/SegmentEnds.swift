internal import HTTPTransferCore
internal import HTTPTypes

/// Decides what follows the end of an exchange of a transfer.
///
/// `@unchecked Sendable`: used on the network thread only.
final class SegmentEnds: @unchecked Sendable {
  private let request: Request
  private let fetcher: SegmentFetcher
  private let responses: SegmentResponses
  private let retries: SegmentRetries
  /// How often the whole was requested again because a piece was wrong.
  private var refetchCount = 0

  init(
    _ request: Request, fetcher: SegmentFetcher, responses: SegmentResponses,
    retries: SegmentRetries
  ) {
    self.request = request
    self.fetcher = fetcher
    self.responses = responses
    self.retries = retries
  }

  /// Decides what follows the end of an exchange.
  ///
  /// - Parameters:
  ///   - exchange: the exchange.
  ///   - completion: how it ended.
  ///   - metrics: its measurements.
  ///   - isRunning: whether requests may be sent.
  ///   - onFailure: called if the destination cannot record the length.
  /// - Returns: the next step of the transfer.
  func conclude(
    _ exchange: SegmentExchange, _ completion: ExchangeCompletion, _ metrics: ExchangeMetrics,
    isRunning: Bool, onFailure: @escaping @Sendable (FileFailure) -> Void
  ) -> TransferStep {
    if metrics.newConnections == 0, metrics.timeToFirstByte > .zero {
      fetcher.table.recordRoundTrip(metrics.timeToFirstByte)
    }
    let (id, mirror) = (exchange.segmentID, exchange.mirror)
    switch exchange.verdict {
    case .superseded: return fetcher.hasNothing ? .launch : .wait
    case .fail(let error):
      if fetcher.dropFailedHedge(id, error, after: nil, from: mirror) { return .wait }
      return retries.failOver(id, error, after: nil, from: mirror) ?? .fail(error)
    case .retry(let error, let delay):
      let move = recordFailure(error, of: exchange)
      return retries.retry(
        id, error, after: move == .none ? delay : nil, from: mirror, isCounted: move != .back)
    case .expired(let error):
      return fetcher.dropHedge(id) ? .wait : retries.askElsewhere(id, error)
    case .unchanged(let head, let url): return .leaveEarlier(head, from: url)
    case .none:
      return bodyEnded(exchange, completion, isRunning: isRunning, onFailure: onFailure)
    }
  }

  private func bodyEnded(
    _ exchange: SegmentExchange, _ completion: ExchangeCompletion, isRunning: Bool,
    onFailure: @escaping @Sendable (FileFailure) -> Void
  ) -> TransferStep {
    let id = exchange.segmentID
    guard let segment = fetcher.table[id] else { return .wait }
    switch completion {
    case .cancelled:
      // Only an unwanted body ends like this: that of an empty file.
      fetcher.table.remove(id)
      return fetcher.table.isComplete ? .finish : .wait
    case .failed(let error):
      if error.code == .unreadableBody, let failure = fetcher.body?.failure {
        return .fail(failure.error(at: request.url))
      }
      let move = recordFailure(TransferError(error), of: exchange)
      return retries.retry(
        id, TransferError(error), after: nil, from: exchange.mirror, isCounted: move != .back)
    // The transfer never ends a body deliberately before the segment's end.
    case .stopped where segment.storedEnd < segment.end: return retryCut(exchange)
    case .finished where exchange.position == nil && !fetcher.table.isComplete:
      // There is neither a body nor a verdict on it: the number of retries must be limited.
      return retryCut(exchange)
    case .finished, .stopped:
      if let position = exchange.position {
        if let expected = exchange.expectedEnd, position < expected, position < segment.end {
          return retryCut(exchange)
        }
        if exchange.expectedEnd == nil, segment.isWhole {
          // The length that was known before stays valid.
          if fetcher.table.isLengthKnown, position < fetcher.table.target.upperBound {
            return retryCut(exchange)
          }
          if let error = beyondTheEnd(position) ?? wrongLength(position) {
            return .fail(error, removes: true)
          }
          guard responses.learnLength(position, by: exchange, onFailure: onFailure) else {
            return .wait
          }
        }
        if !segment.isWhole, position < segment.end, !fetcher.table.isComplete {
          // A server may send a shorter part than requested.
          return sendRest(of: segment, after: position, exchange, isRunning: isRunning)
        }
      }
      if isRunning, fetcher.representation.isSingleStream, !fetcher.table.isComplete {
        // The whole arrived without all wanted bytes; the number of retries must be limited.
        guard fetcher.pieces.refutation != nil else { return retryCut(exchange) }
        fetcher.table.remove(id)
        return refetch()
      }
      fetcher.table.remove(id)
      if fetcher.table.isComplete { return .finish }
      if isRunning { fetcher.plan() }
      // No request is in flight or planned: the answer brought no bytes.
      return fetcher.hasNothing ? .launch : .wait
    }
  }

  /// Where the next request goes after a failure.
  private enum Move {
    /// To the same URL.
    case none
    /// Back to the URL that the user gave or the signer made, away from its redirects' target.
    case back
    /// To the next URL that the signer makes, perhaps of the same dead server.
    case signed
  }

  /// Records a failure after which the bytes may be found elsewhere.
  private func recordFailure(_ error: TransferError, of exchange: SegmentExchange) -> Move {
    // A response that was cut had begun.
    guard error.mayHaveMoved, error.code != .connectionLost || exchange.position == nil,
      fetcher.servers.locations.recordFailure(
        of: exchange.asked, by: exchange.mirror, now: .now)
    else { return .none }
    // Without a URL, the signer makes the next one; with one, only its redirects lead elsewhere.
    return fetcher.servers.locations[exchange.mirror].base == nil ? .signed : .back
  }

  /// Requests the rest of a part that was shorter than requested.
  ///
  /// The rest of a piece that must come from one mirror is requested from that mirror.
  private func sendRest(
    of segment: SegmentTable.Segment, after position: Int64, _ exchange: SegmentExchange,
    isRunning: Bool
  ) -> TransferStep {
    guard segment.suspectPiece != nil, isRunning else {
      fetcher.table.remove(segment.id)
      return .plan
    }
    guard position > segment.start else { return retryCut(exchange) }
    fetcher.table.fail(segment.id, isCounted: false)
    guard let rest = fetcher.table.retry(segment.id) else { return .plan }
    fetcher.send(rest, to: exchange.mirror)
    return .wait
  }

  /// The error for a range beyond the end of a body of `length` bytes; nil if it is within the
  /// body.
  private func beyondTheEnd(_ length: Int64) -> TransferError? {
    guard request.method == .get, let range = request.range, range.lowerBound >= length,
      let response = fetcher.representation.response
    else { return nil }
    return .beyondTheEnd(length, response.head, response.url)
  }

  /// The error for a body of another length than the request demands, which only its end shows; nil
  /// for the right one.
  private func wrongLength(_ length: Int64) -> TransferError? {
    guard request.method == .get, request.range == nil, let wanted = request.completeLength,
      wanted != length, let response = fetcher.representation.response
    else { return nil }
    return TransferError(
      .invalidResponse, response.url, "the server's file has \(length) bytes, not \(wanted)",
      response: response.head)
  }

  /// Requests wrong pieces again if no request is in flight, by ranges if the server supports them.
  func refetch() -> TransferStep {
    guard let error = fetcher.pieces.takeRefutation() else { return .launch }
    if fetcher.representation.canSkip, !fetcher.representation.haveRangesBeenRefused {
      fetcher.representation.useRanges()
    }
    if fetcher.representation.isSingleStream {
      // The whole is requested again, which resets the failure counts of the pieces.
      refetchCount += 1
      guard refetchCount <= PieceTable.attemptLimit * fetcher.servers.mirrors.count else {
        return .fail(error)
      }
    }
    return .launch
  }

  private func retryCut(_ exchange: SegmentExchange) -> TransferStep {
    let error = TransferError(
      .connectionLost, fetcher.servers.url(of: exchange.mirror), ResponseFault.cutShort,
      isTransient: true)
    return retries.retry(exchange.segmentID, error, after: nil, from: exchange.mirror)
  }
}
