/// A claim on spilled bytes that ends with the last reference to it.
final class SpillLease: Sendable {
  private let keeper: any ByteKeeper
  private let claim: SpillClaim

  init(of keeper: any ByteKeeper, claim: SpillClaim) {
    self.keeper = keeper
    self.claim = claim
  }

  deinit { keeper.endLease(claim) }
}
