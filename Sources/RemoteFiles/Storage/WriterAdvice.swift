internal import HTTPTransfer

/// Tells the writer of a segment how to treat its gathered bytes.
struct WriterAdvice {
  /// Whether to write them out now, because a read waits for them.
  var mustFlush: Bool
  /// The end of the segment.
  var end: Int64
  /// Whether it is far ahead of its reader.
  var isAhead: Bool
  /// The request that was to bring the same bytes, to be cancelled.
  var rival: ExchangeID?
  /// The silent server that was to bring them, if another one was asked instead.
  var silentMirror: Int?
}
