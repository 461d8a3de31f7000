internal import HTTPTransferCore

/// A version as its readers see it, and the memory that holds some of its bytes.
protocol ByteKeeper: AnyObject, Sendable {
  /// Notes that the disk does not return the cached bytes of `range`.
  func recordUnreadable(_ range: ByteRange)

  /// Drops the bytes of `range` that lie in `file`, unless a read uses or awaits some of them.
  ///
  /// - Returns: whether they were dropped.
  func giveUpSpilled(_ range: ByteRange, in file: SpillFile) -> Bool

  /// Ends the lease of a reader on the spilled bytes of `claim`.
  func endLease(_ claim: SpillClaim)
}
