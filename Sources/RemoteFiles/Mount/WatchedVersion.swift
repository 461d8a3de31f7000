/// A version as the ``DeadlineClock`` and the end of a mount see it.
protocol WatchedVersion: AnyObject, Sendable {
  associatedtype Checkpoints: Checkpointed

  var id: VersionID { get }

  var checkpoints: Checkpoints { get }

  /// When the last of the reads that wait began to wait.
  var lastWaitBegan: ContinuousClock.Instant? { get }

  /// The process was suspended for `delay`, during which no server could answer.
  func postpone(by delay: Duration)

  /// Looks into the cache again, if it could not be asked before.
  func lookAgainIfDue(now: ContinuousClock.Instant)

  /// Fails reads whose time is up, and gives up requests that bring nothing.
  func expire(now: ContinuousClock.Instant)

  /// Whether nothing waits in it and all of it is committed.
  func isIdle(areDescriptorsShort: Bool) -> Bool

  /// Closes the entry if nobody reads, for its descriptors.
  ///
  /// - Returns: whether there was one.
  func releaseIdleEntry() -> Bool

  /// Fails whatever waits: the mount ends.
  func abandon()
}
