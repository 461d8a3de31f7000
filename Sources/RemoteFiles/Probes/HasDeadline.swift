/// A file or directory with a question to its server, which has a deadline.
///
/// Its methods are called on the network thread.
protocol HasDeadline: AnyObject, Sendable {
  /// Ends a question whose time is up.
  ///
  /// - Returns: whether a question is still under way.
  func expire(now: ContinuousClock.Instant) -> Bool

  /// Moves deadlines by `delay`, for which the process was suspended: no server could answer then.
  func postpone(by delay: Duration)
}
