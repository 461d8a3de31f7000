internal import HTTPTransferCore
internal import Synchronization

extension RemoteVersion: WatchedVersion {}

extension RemoteVersion: EntryHolder {
  var entryOwner: any EntryOwner { home }
}

extension RemoteVersion: ByteKeeper {
  func recordUnreadable(_ range: ByteRange) { verifier.recordUnreadable(range) }

  func giveUpSpilled(_ range: ByteRange, in file: SpillFile) -> Bool {
    storer.giveUpSpilled(range, in: file)
  }

  func endLease(_ claim: SpillClaim) {
    state.withLock { $0.version.endLease(claim) }
  }
}
