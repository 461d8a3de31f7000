internal import HTTPTransfer
internal import HTTPTransferCore

/// The requests of one version that are in flight or have bytes to store, in order of entry.
struct SegmentList: RandomAccessCollection, Sendable {
  private var segments: [Segment] = []
  private var lastID = 0

  var startIndex: Int { segments.startIndex }
  var endIndex: Int { segments.endIndex }
  subscript(position: Int) -> Segment { segments[position] }

  subscript(id: SegmentID) -> Segment? { index(of: id).map { segments[$0] } }

  /// Whether the whole is arriving in one response.
  var isStreaming: Bool { contains(where: \.isWhole) }

  /// Whether another request than `id` is bringing bytes.
  func isServed(besides id: SegmentID) -> Bool {
    contains { $0.id != id && $0.firstByteAt != nil && !$0.hasEnded }
  }

  /// Whether the byte at `offset` is on its way from the server or to the disk.
  func brings(_ offset: Int64) -> Bool { contains { $0.start <= offset && offset < $0.end } }

  /// The segment with whole pages that `stat` cannot show before they are stored.
  var ofUnstoredPages: SegmentID? {
    let page = ContentMap.pageByteCount
    return first { $0.isWhole && $0.position / page * page > $0.enqueuedEnd }?.id
  }

  /// How many can be entered before memory is allocated.
  var capacity: Int { segments.capacity }

  // A loop over the elements would copy them, for every piece of a body.
  private func index(of id: SegmentID) -> Int? {
    segments.indices.first { segments[$0].id == id }
  }

  /// An identifier for the next request.
  mutating func nextID() -> SegmentID {
    lastID += 1
    return SegmentID(rawValue: lastID)
  }

  mutating func append(_ segment: Segment) { segments.append(segment) }

  /// Removes a request; nil if it was removed before.
  @discardableResult
  mutating func remove(_ id: SegmentID) -> Segment? {
    guard let index = index(of: id) else { return nil }
    let segment = segments.remove(at: index)
    // Frees the memory: a mount may know thousands of versions without readers.
    if segments.isEmpty { segments = [] }
    return segment
  }

  /// Changes one request, if it has not been removed.
  @discardableResult
  mutating func change<Result>(_ id: SegmentID, _ body: (inout Segment) -> Result) -> Result? {
    index(of: id).map { body(&segments[$0]) }
  }

  mutating func changeAll(_ body: (inout Segment) -> Void) {
    for index in segments.indices { body(&segments[index]) }
  }

  /// Ends the requests that match `predicate`: further bytes of them are not stored.
  ///
  /// - Returns: the exchanges to cancel.
  mutating func end(where predicate: (Segment) -> Bool) -> [ExchangeID] {
    segments.indices.compactMap { index in
      guard predicate(segments[index]) else { return nil }
      segments[index].stop()
      return segments[index].exchange
    }
  }

  /// Moves ends down as planned; other requests fetch the rest.
  mutating func apply(_ cuts: [FetchPlanner.Cut]) {
    for cut in cuts { change(SegmentID(rawValue: cut.id)) { $0.cut(to: cut.end) } }
  }

  // MARK: Hedging

  /// Ends the request that was to bring the same bytes as a segment that has brought some.
  ///
  /// - Returns: the exchange of that request, to be cancelled.
  mutating func endRival(of id: SegmentID) -> ExchangeID? {
    guard let index = index(of: id), let rival = segments.endRival(ofSegmentAt: index) else {
      return nil
    }
    return segments[rival].exchange
  }

  /// Removes the request `id`, which has failed, if it hedges a request that is still in flight.
  ///
  /// Such a failure has no other consequences.
  ///
  /// - Returns: whether it was removed.
  mutating func dropFailedHedge(_ id: SegmentID) -> Bool {
    guard let hedged = self[id]?.hedgeOf, self[hedged] != nil else { return false }
    remove(id)
    return true
  }
}
