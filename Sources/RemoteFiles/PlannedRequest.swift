internal import HTTPTransferCore

/// A request that is to be sent for bytes of one version.
struct PlannedRequest {
  let range: ByteRange
  /// Whether the whole representation is asked for, not a range of it.
  var isWhole = false
  /// Whether it is sent without a reader, because the whole file is wanted.
  var isPrefetch = false
  /// The request that brings nothing, beside which this one is sent.
  var hedgeOf: SegmentID?
  /// The piece that it is to bring again, alone.
  var suspect: Segment.Suspect?
}
