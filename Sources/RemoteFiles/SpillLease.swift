/// A claim on spilled bytes that ends with the last reference to it.
final class SpillLease: Sendable {
  private let version: RemoteVersion
  private let claim: SpillClaim

  init(version: RemoteVersion, claim: SpillClaim) {
    self.version = version
    self.claim = claim
  }

  deinit { version.storer.endLease(claim) }
}
