/// How long a command may take, from its start.
struct TimeLimit {
  let end: ContinuousClock.Instant?

  /// Begins now; `duration` is nil for no limit.
  init(_ duration: Duration?) { end = duration.map { .now + $0 } }

  /// What is left of it, at least zero; nil without a limit.
  var left: Duration? { end.map { max(.zero, $0 - .now) } }
}
