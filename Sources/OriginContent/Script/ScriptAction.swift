/// One action of a script for a request.
indirect enum ScriptAction: Equatable, Sendable {
  /// Send the planned response up to and including its head.
  case head(HeadChange)
  /// Send this many further bytes of the planned body; nil sends the rest, and its end.
  case body(Expression?)
  /// Send a raw text.
  case text(TextTemplate)
  /// Send raw bytes.
  case bytes([UInt8])
  /// Send raw bytes of a version of the resource, from one to another, both included.
  case content(first: Expression, last: Expression, version: Expression?)
  /// Wait for this number of milliseconds.
  case delay(Expression)
  /// Send all later bytes at this many bytes per second; nil for no limit.
  case rate(Expression?)
  /// Read the request's body to its end, or up to this many bytes in total.
  case read(Expression?)
  /// Execute one of these sequences, at random.
  case choose([[ScriptAction]])
  /// Execute a sequence this many times.
  case repetition(Expression, [ScriptAction])
  /// Wait until the client disconnects.
  case stall
  /// Close the connection (FIN).
  case close
  /// Abort the connection (RST).
  case reset

  /// Whether no action can follow.
  var isEnd: Bool { self == .stall || self == .close || self == .reset }
}
