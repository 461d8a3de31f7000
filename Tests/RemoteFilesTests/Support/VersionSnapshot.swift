import Synchronization

@testable import RemoteFiles

extension RemoteVersion {
  /// A copy of what it knows.
  func snapshot() -> VersionState { state.withLock { $0.version } }
}
