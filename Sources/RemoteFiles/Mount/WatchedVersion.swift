/// A version as the ``DeadlineClock`` and the end of a mount see it.
protocol WatchedVersion: AnyObject, Sendable {
  var id: VersionID { get }

  /// When the most recent of the waiting reads began to wait.
  var lastWaitBegan: ContinuousClock.Instant? { get }

  /// Moves deadlines by `delay`, for which the process was suspended: no server could answer then.
  func postpone(by delay: Duration)

  /// Looks into the cache again if that failed before.
  func lookAgainIfDue(now: ContinuousClock.Instant)

  /// Fails reads whose time is up, and abandons stalled requests.
  func expire(now: ContinuousClock.Instant)

  /// Whether no read waits in it and all of it is committed.
  func isIdle(areDescriptorsShort: Bool) -> Bool

  /// Closes the entry if it has no readers, to free its descriptors.
  ///
  /// - Returns: whether it closed one.
  func releaseIdleEntry() -> Bool

  /// Fails all waiting reads, because the mount ends.
  func abandon()
}
