import Synchronization

@testable import RemoteFiles

extension RemoteVersion {
  /// A copy of the version's state.
  func snapshot() -> VersionState { state.withLock { $0.version } }
}
