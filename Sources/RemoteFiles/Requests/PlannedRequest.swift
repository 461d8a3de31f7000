internal import HTTPTransferCore

/// A request to be sent for bytes of one version.
struct PlannedRequest {
  let range: ByteRange
  /// Whether the whole representation is requested, not a range of it.
  var isWhole = false
  /// Whether it is sent without a reader, because the whole file is wanted.
  var isPrefetch = false
  /// The stalled request that this one hedges.
  var hedgeOf: SegmentID?
  /// The piece that it is to fetch again, alone.
  var suspect: Segment.Suspect?
}
