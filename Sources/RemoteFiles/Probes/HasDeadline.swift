/// A file or directory with a question to its server, which has a deadline; called on the network
/// thread.
protocol HasDeadline: AnyObject, Sendable {
  /// Ends a question whose time is up.
  ///
  /// - Returns: whether a question is under way still.
  func expire(now: ContinuousClock.Instant) -> Bool

  /// The process was suspended for `delay`, during which no server could answer.
  func postpone(by delay: Duration)
}
