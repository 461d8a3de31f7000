internal import HTTPTransfer

/// What the writer of a segment does with the bytes that it has gathered.
struct WriterAdvice {
  /// Write them out now: a read waits for them.
  var mustFlush: Bool
  /// Where the segment is to end.
  var end: Int64
  /// Whether it is far ahead of its reader.
  var isAhead: Bool
  /// The request that was to bring the same, to be cancelled.
  var rival: ExchangeID?
  /// The server that was to bring it, where another one was asked when it was silent.
  var silentMirror: Int?
}
