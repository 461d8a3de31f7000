internal import HTTPTransferCore

/// What a transfer does after the failure of a server.
enum FailOver {
  /// It counts as the failure of a single server.
  case none
  /// The server is asked for less at a time; others, or its own other requests, bring the rest.
  case fewer
  /// Another server is asked, or the same one again; with `isExcluded` the one that has failed is
  /// given up.
  case ask(Int, attempt: Int, isExcluded: Bool)
  case nobodyLeft(isExcluded: Bool)
}

extension MirrorSet {
  /// The server that a request of a transfer goes to; nil if none is left.
  ///
  /// - Parameters:
  ///   - excluded: who must not be asked for this range.
  ///   - spreads: whether bytes of several servers may meet in one file.
  ///   - now: the time.
  /// - Returns: the server.
  func pick(
    except excluded: Set<Int> = [], spreads: Bool, now: ContinuousClock.Instant = .now
  ) -> Int? {
    guard count > 1 else { return 0 }
    // A download can wait until it can be asked, which a reader would not.
    if let sole { return sole }
    return spreads
      ? choose(isUrgent: false, except: excluded, now: now) : contact(except: excluded, now: now)
  }

  /// Finds another server after a failure.
  ///
  /// - Parameters:
  ///   - error: the failure.
  ///   - retryAfter: how long the server wants to be left alone.
  ///   - index: the server.
  ///   - representation: what is known of the file.
  ///   - retryCount: how many failures in a row a server may have.
  ///   - now: the time.
  /// - Returns: what to do.
  mutating func failOver(
    after error: TransferError, retryAfter: Duration?, from index: Int,
    _ representation: Representation, retryCount: Int, now: ContinuousClock.Instant
  ) -> FailOver {
    guard count > 1, error.isOfServer else { return .none }
    if error.code == .changed, error.isTransient, !hasTrusted(besides: index) { return .none }
    let spreads = representation.canSpread(trust)
    if error.hasNoRoute, representation.isConfirmed {
      setAside(index, until: now + FetchConstants.disconnectionInterval)
      // Of a network that is down the mirrors know nothing.
      guard let next = pick(spreads: spreads, now: now), rest(of: next, now: now) == .zero else {
        return .none
      }
      return .ask(next, attempt: 1, isExcluded: false)
    }
    let isKnown = self[index].content != nil
    if error.status != nil, self[index].flightCount > 0, isKnown {
      // One connection too many says nothing about the others.
      limitFlights(index)
      return .fewer
    }
    let attempt = failed(
      index, reason: error.reason, retryAfter: retryAfter, random: .random(in: 0..<1), now: now)
    // One that has never answered is given up soon, since there are others.
    let limit = isKnown ? retryCount : min(1, retryCount)
    var isExcluded = false
    if error.code == .changed {
      isExcluded = refuse(index, reason: error.reason)
    } else if !error.isTransient || attempt > limit {
      exclude(index, reason: error.reason)
      isExcluded = true
    }
    guard let next = pick(spreads: spreads) else { return .nobodyLeft(isExcluded: isExcluded) }
    return .ask(next, attempt: attempt, isExcluded: isExcluded)
  }
}
