internal import HTTPTransferCore

/// Plans the next requests to a server of one version that serves ranges.
struct RequestPlanner {
  let content: ContentMap
  let demand: VersionDemand
  let requests: VersionRequests
  let now: ContinuousClock.Instant

  /// Plans what reads wait for, and what is read ahead for them.
  func plan(length: Int64) -> FetchPlanner.Plan {
    let (line, backoff) = (requests.line, requests.backoff)
    let mayReadAhead =
      demand.hasReader(now: now) && !demand.policy.isPaused && !backoff.isFruitless
    let most =
      backoff.isFruitless
      ? min(line.requestLimit, Backoff.fruitlessRequestLimit) : line.requestLimit
    let strides = mayReadAhead && readAheadLimit == nil ? demand.activity.strides : nil
    return FetchPlanner().plan(
      length: length, extents: content.settled, flights: flights, demands: demands,
      streams: mayReadAhead ? readers(length: length) : [],
      predictions: strides?.predictions(length: length) ?? [],
      limits: FetchPlanner.Limits(
        connections: line.target,
        // A read does not wait for prefetched bytes: one more request is allowed.
        demandConnections: most + (requests.segments.contains(where: \.isPrefetch) ? 1 : 0),
        // Both or neither: a guess of one would say nothing about the connection.
        roundTrip: line.roundTrip,
        connectionRate: line.measuredRoundTrip == nil || demand.activity.streams.trust == .low
          ? nil : line.connectionRate))
  }

  /// Plans the prefetch: the unused connections fetch bytes that no read needs yet.
  func prefetchPlan(length: Int64) -> FetchPlanner.Plan? {
    // A cache that cannot store would have them fetched again and again.
    guard demand.parked.isEmpty, readAheadLimit == nil else { return nil }
    let line = requests.line
    // A reader always gets half of the connections.
    let target = requests.backoff.isFruitless ? 1 : line.target
    return FetchPlanner().planPrefetch(
      length: length, extents: content.settled, flights: flights,
      limits: FetchPlanner.Limits(
        connections: demand.hasReader(now: now) ? max(1, target / 2) : target,
        demandConnections: line.requestLimit, roundTrip: line.roundTrip,
        connectionRate: line.connectionRate))
  }

  /// The next wrong piece to fetch again, from one server alone, so that its origin is known.
  ///
  /// A file may have very many wrong pieces, and this is called after each: only those that are
  /// wanted are looked at.
  func nextSuspect() -> PlannedRequest? {
    guard let table = content.pieces, table.hasSuspects,
      requests.segments.count < requests.line.requestLimit
    else { return nil }
    let fetched = Set(requests.segments.compactMap { $0.suspect?.piece })
    func find(in pieces: some Sequence<Int>) -> Int? {
      pieces.first { index in
        // The piece may be present by now: the record of an entry that could not be opened before
        // may have it.
        !table.isChecking(piece: index) && !fetched.contains(index)
          && !content.extents.contains(table.hashes.range(ofPiece: index, length: table.length))
      }
    }
    let found =
      demand.isPrefetching
      ? find(in: table.suspects)
      : demand.parked.reads.lazy.compactMap {
        find(in: table.suspects(in: content.clamped($0.range)))
      }.first
    guard let index = found else { return nil }
    return PlannedRequest(
      range: table.hashes.range(ofPiece: index, length: table.length),
      suspect: Segment.Suspect(
        piece: index, excludedMirrors: table.excluded(fromPiece: index)))
  }

  /// The stream of the whole, if there is no other way and it is wanted.
  func wholeRequest() -> PlannedRequest? {
    let isPrefetch = demand.isPrefetching && readAheadLimit == nil
    guard demand.isAwaited || isPrefetch, requests.segments.isEmpty,
      // The bytes that have arrived are being hashed, and may be all.
      content.isWanting
    else { return nil }
    return PlannedRequest(
      range: 0..<(content.length ?? Int64.max), isWhole: true, isPrefetch: !demand.isAwaited)
  }

  private var readAheadLimit: Int64? { requests.pacing.readAheadLimit }

  /// The requests in flight, except those that fetch a piece again from one server alone.
  private var flights: [FetchPlanner.Flight] {
    requests.segments.lazy.filter { $0.suspect == nil }.map {
      FetchPlanner.Flight(
        id: $0.id.rawValue, start: $0.storedEnd, position: $0.position, end: $0.end,
        rate: $0.rate(now: now))
    }
  }

  /// The ranges that the parked reads need: whole pieces if the file has pieces.
  private var demands: [ByteRange] {
    let ranges = demand.parked.reads.map { content.needed(for: $0.range) }
    guard content.pieces != nil else { return ranges }
    return ranges.reduce(into: []) { if $0.last != $1 { $0.append($1) } }
  }

  private func readers(length: Int64) -> [FetchPlanner.Reader] {
    let readers = demand.activity.streams.readers
    if content.pieces == nil, readAheadLimit == nil { return readers }
    return readers.map { reader in
      let window = min(reader.window, readAheadLimit ?? Int64.max)
      let cursor = min(reader.cursor, length)
      let end = cursor + min(window, length - cursor)
      guard let pieces = content.pieces, end > cursor else {
        return FetchPlanner.Reader(cursor: reader.cursor, window: window)
      }
      // A part of a piece cannot be read.
      let whole = pieces.wholePieces(around: (end - 1)..<end).upperBound
      return FetchPlanner.Reader(cursor: reader.cursor, window: max(window, whole - cursor))
    }
  }
}
