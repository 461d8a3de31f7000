internal import HTTPTransferCore

/// A version as its readers see it, and the memory that holds some of its bytes.
protocol ByteKeeper: AnyObject, Sendable {
  /// The disk does not return what the cache holds of `range`.
  func noteUnreadable(_ range: ByteRange)

  /// Gives up bytes that lie in `file`, unless somebody reads or waits for some of them.
  ///
  /// - Returns: whether they are gone.
  func giveUpSpilled(_ range: ByteRange, in file: SpillFile) -> Bool

  /// A reader has done with the spilled bytes of `claim`.
  func endLease(_ claim: SpillClaim)
}
