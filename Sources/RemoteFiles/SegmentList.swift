internal import HTTPTransfer
internal import HTTPTransferCore

/// The requests for bytes of one version that are in flight, or have brought what is still to be stored; in
/// the order in which they were entered.
struct SegmentList: RandomAccessCollection, Sendable {
  private var segments: [Segment] = []
  private var lastID = 0

  var startIndex: Int { segments.startIndex }
  var endIndex: Int { segments.endIndex }
  subscript(position: Int) -> Segment { segments[position] }

  subscript(id: SegmentID) -> Segment? { index(of: id).map { segments[$0] } }

  /// Whether the whole is arriving in one response.
  var isStreaming: Bool { contains(where: \.isWhole) }

  /// Whether the server is bringing bytes by another request than `id`.
  func isServed(besides id: SegmentID) -> Bool {
    contains { $0.id != id && $0.firstByteAt != nil && !$0.hasEnded }
  }

  /// Whether `offset` is on its way, be it to the disk.
  func brings(_ offset: Int64) -> Bool { contains { $0.start <= offset && offset < $0.end } }

  /// The segment that has brought whole pages which `stat` cannot show before they are stored.
  var ofUnstoredPages: SegmentID? {
    let page = ContentMap.pageByteCount
    return first { $0.isWhole && $0.position / page * page > $0.handedOverEnd }?.id
  }

  /// How many can be entered before memory is taken.
  var capacity: Int { segments.capacity }

  private func index(of id: SegmentID) -> Int? { segments.firstIndex { $0.id == id } }

  /// A name for the next request.
  mutating func nextID() -> SegmentID {
    lastID += 1
    return SegmentID(rawValue: lastID)
  }

  mutating func append(_ segment: Segment) { segments.append(segment) }

  /// Takes a request out; nil if it was taken out before.
  @discardableResult
  mutating func remove(_ id: SegmentID) -> Segment? {
    guard let index = index(of: id) else { return nil }
    let segment = segments.remove(at: index)
    // A mount may know thousands of versions that nobody reads: they keep no memory for segments.
    if segments.isEmpty { segments = [] }
    return segment
  }

  /// Changes one request, where it is not taken out yet.
  @discardableResult
  mutating func change<Result>(_ id: SegmentID, _ body: (inout Segment) -> Result) -> Result? {
    index(of: id).map { body(&segments[$0]) }
  }

  mutating func changeAll(_ body: (inout Segment) -> Void) {
    for index in segments.indices { body(&segments[index]) }
  }

  /// Ends those of which `predicate` holds: what comes of them all the same is not stored.
  ///
  /// - Returns: the exchanges to cancel.
  mutating func end(where predicate: (Segment) -> Bool) -> [ExchangeID] {
    segments.indices.compactMap { index in
      guard predicate(segments[index]) else { return nil }
      segments[index].stop()
      return segments[index].transfer
    }
  }

  /// Moves ends down, as the planner says: the rest is fetched otherwise.
  mutating func apply(_ cuts: [FetchPlanner.Cut]) {
    for cut in cuts { change(SegmentID(rawValue: cut.id)) { $0.cut(to: cut.end) } }
  }

  // MARK: Hedges

  /// A segment has brought something: the request that was to bring the same, if there is one, need not any
  /// more.
  ///
  /// - Returns: that one, to be cancelled.
  mutating func endRival(of id: SegmentID) -> ExchangeID? {
    guard let index = index(of: id), let rival = segments.endRival(ofSegmentAt: index) else {
      return nil
    }
    return segments[rival].transfer
  }

  /// The request `id` has failed: where it was a hedge beside a request that goes on, nobody need know.
  ///
  /// - Returns: whether it was, and is taken out.
  mutating func dropFailedHedge(_ id: SegmentID) -> Bool {
    guard let hedged = self[id]?.hedgeOf, self[hedged] != nil else { return false }
    remove(id)
    return true
  }
}
