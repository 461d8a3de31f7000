/// One thing that a script does when a request comes.
indirect enum ScriptAction: Equatable, Sendable {
  /// Send the planned response up to and including its head.
  case head(HeadChange)
  /// Send the next so many bytes of the planned body; nil sends all that is left, and its end.
  case body(Expression?)
  /// Send a text as it is.
  case text(TextTemplate)
  /// Send bytes as they are.
  case bytes([UInt8])
  /// Send bytes of a version of the resource as they are, from one to another, both included.
  case content(first: Expression, last: Expression, version: Expression?)
  /// Do nothing for so many milliseconds.
  case delay(Expression)
  /// Send what follows at so many bytes per second; nil for no limit.
  case rate(Expression?)
  /// Read the request's body to its end, or until so many bytes of it have been read in all.
  case read(Expression?)
  /// Carry out one of these, at random.
  case choose([[ScriptAction]])
  /// Carry these out so many times.
  case repetition(Expression, [ScriptAction])
  /// Do nothing until the client goes.
  case stall
  /// End the connection (FIN).
  case close
  /// Abort the connection (RST).
  case reset

  /// Whether nothing can come after it.
  var isEnd: Bool { self == .stall || self == .close || self == .reset }
}
