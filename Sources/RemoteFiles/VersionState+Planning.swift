internal import HTTPTransfer
internal import HTTPTransferCore

/// What to ask the server for next.
extension VersionState {
  /// Starts what is wanted now and is neither present nor in flight.
  mutating func plan(now: ContinuousClock.Instant, into actions: inout VersionActions) {
    // Also where nothing holds a stream back any more.
    followReader(now: now, into: &actions)
    guard !isComplete, !isSuperseded, permanentFailure == nil, !isAwaitingLocation else { return }
    if let retryAt, now < retryAt { return }
    if isSequential || length == nil {
      planSequential(now: now, into: &actions)
      return
    }
    guard let length else { return }
    if pieces != nil { planSuspects(now: now, into: &actions) }
    let extents = settledExtents
    let flights = self.flights(now: now)
    let mayReadAhead = hasReader(now: now) && !wishes.isPaused && !isFruitless
    let most = isFruitless ? min(requestLimit, Self.fruitlessRequestLimit) : requestLimit
    let plan = FetchPlanner().plan(
      length: length, extents: extents, flights: flights, demands: demands,
      streams: mayReadAhead ? readers : [],
      predictions: mayReadAhead && readAheadLimit == nil ? strides.predictions(length: length) : [],
      limits: FetchPlanner.Limits(
        connections: parallelism.target,
        // A read does not wait for what is fetched for nobody: one request more is allowed.
        demandConnections: most + (segments.contains(where: \.isPrefetch) ? 1 : 0),
        // Both or neither: a guess of one would say nothing about the line.
        roundTrip: roundTrip,
        connectionRate: measuredRoundTrip == nil || streams.trust == .low ? nil : connectionRate))
    for cut in plan.cuts {
      guard let index = segments.firstIndex(where: { $0.id.rawValue == cut.id }) else { continue }
      segments[index].end = min(segments[index].end, cut.end)
    }
    for range in plan.starts {
      actions.starts.append(addSegment(range: range, isWhole: false, now: now))
    }
    if isPrefetching { planPrefetch(length: length, now: now, into: &actions) }
  }

  /// Gives the connections that nobody needs to the bytes that nobody has asked to read.
  private mutating func planPrefetch(
    length: Int64, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    // A cache that takes nothing would have them fetched again and again.
    guard parked.isEmpty, readAheadLimit == nil else { return }
    // One who reads gets the half of them at any time.
    let target = isFruitless ? 1 : parallelism.target
    let connections = hasReader(now: now) ? max(1, target / 2) : target
    let plan = FetchPlanner().planPrefetch(
      length: length, extents: settledExtents, flights: flights(now: now),
      limits: FetchPlanner.Limits(
        connections: connections, demandConnections: requestLimit, roundTrip: roundTrip,
        connectionRate: connectionRate))
    for cut in plan.cuts {
      guard let index = segments.firstIndex(where: { $0.id.rawValue == cut.id }) else { continue }
      segments[index].end = min(segments[index].end, cut.end)
    }
    for range in plan.starts {
      actions.starts.append(
        addSegment(range: range, isWhole: false, isPrefetch: true, now: now))
    }
  }

  /// What is in flight, but for what is fetched again from one server alone.
  private func flights(now: ContinuousClock.Instant) -> [FetchPlanner.Flight] {
    segments.lazy.filter { $0.suspectPiece == nil }.map {
      FetchPlanner.Flight(
        id: $0.id.rawValue, start: $0.storedEnd, position: $0.position, end: $0.end,
        rate: $0.rate(now: now))
    }
  }

  /// What need not be asked for.
  private var settledExtents: ExtentSet { pieces?.settled(with: extents) ?? extents }

  /// What the parked reads need: whole pieces, where the file has such.
  private var demands: [ByteRange] {
    let ranges = parked.reads.map { clamped($0.range) }
    guard let pieces else { return ranges }
    var demands: [ByteRange] = []
    for range in ranges.map({ pieces.wholePieces(around: $0) }) where demands.last != range {
      demands.append(range)
    }
    return demands
  }

  private var readers: [FetchPlanner.Reader] {
    if pieces == nil, readAheadLimit == nil { return streams.readers }
    let readers = streams.readers.map {
      FetchPlanner.Reader(
        cursor: $0.cursor, window: min($0.window, readAheadLimit ?? Int64.max))
    }
    guard let pieces, let length else { return readers }
    // A part of a piece is of no use to anybody.
    return readers.map { reader in
      let cursor = min(reader.cursor, length)
      let end = cursor + min(reader.window, length - cursor)
      guard end > cursor else { return reader }
      let whole = pieces.wholePieces(around: (end - 1)..<end).upperBound
      return FetchPlanner.Reader(cursor: reader.cursor, window: max(reader.window, whole - cursor))
    }
  }

  /// Asks for pieces that were wrong, each from one server alone, so that it is known who has brought it.
  private mutating func planSuspects(
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    for index in pieces?.suspects ?? [] {
      guard let table = pieces, !table.isChecking(piece: index),
        !segments.contains(where: { $0.suspectPiece == index }),
        segments.count < requestLimit
      else { continue }
      let range = table.hashes.range(ofPiece: index, length: table.length)
      // It may be present by now: the record of an entry that could not be opened before has it.
      guard !extents.holes(in: range).isEmpty,
        isPrefetching || parked.reads.contains(where: { clamped($0.range).overlaps(range) })
      else { continue }
      _ = pieces?.restart(piece: index)
      forgetAbsentSpill(in: range)
      var segment = addSegment(range: range, isWhole: false, now: now)
      segment.suspectPiece = index
      segment.excludedMirrors = table.excluded(fromPiece: index)
      segments[segments.count - 1] = segment
      actions.starts.append(segment)
    }
  }

  /// The parts of `range` that have not arrived: what a writer stores of what it has.
  func absent(in range: ByteRange) -> [ByteRange] {
    pieces?.holes(in: range, extents: extents) ?? extents.holes(in: range)
  }

  /// Whether somebody is reading: read-ahead for one who has gone would never end.
  func hasReader(now: ContinuousClock.Instant) -> Bool {
    !parked.isEmpty || !lengthWaits.isEmpty
      || lastReadAt.map { now - $0 < FileSettings.readerMemory } ?? false
  }

  private mutating func planSequential(
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    let isPrefetch = isPrefetching && readAheadLimit == nil
    let isAwaited = !parked.isEmpty || !lengthWaits.isEmpty
    guard isAwaited || isPrefetch, segments.isEmpty,
      // What has arrived is being hashed, and may be all.
      pieces?.isWanting(extents: extents) != false
    else { return }
    actions.starts.append(
      addSegment(
        range: 0..<(length ?? Int64.max), isWhole: true, isPrefetch: !isAwaited, now: now))
  }

  /// Enters a request that is about to be sent, or has been.
  mutating func addSegment(
    range: ByteRange, isWhole: Bool, isPrefetch: Bool = false, hedgeOf: SegmentID? = nil,
    now: ContinuousClock.Instant
  ) -> Segment {
    lastSegment += 1
    // Whatever an answer says of its own length: bytes beyond the file's are nobody's.
    let end = max(range.lowerBound, min(range.upperBound, length ?? .max))
    let segment = Segment(
      id: SegmentID(rawValue: lastSegment), isWhole: isWhole, isPrefetch: isPrefetch,
      hedgeOf: hedgeOf,
      start: range.lowerBound, end: end, position: range.lowerBound,
      handedOverEnd: range.lowerBound, storedEnd: range.lowerBound,
      lastProgressAt: now)
    let index = segments.count
    segments.append(segment)
    updateWake(of: index)
    // As it is entered: whether somebody waits for it decides its turn at the server.
    return segments[index]
  }
}
