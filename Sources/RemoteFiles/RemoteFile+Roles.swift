internal import HTTPTransferCore
internal import Synchronization

extension RemoteFile: VersionOwner {
  var currentWishes: FileWishes { wishes.withLock { $0 } }

  func whileLoading<Failure: Error>(_ work: () throws(Failure) -> Void) throws(Failure) {
    try loading.withLock { (_) throws(Failure) in try work() }
  }

  func perform(_ effects: VersionEffects, of version: RemoteVersion) {
    EffectRunner(owner: version).perform(effects)
  }
}
