internal import HTTPTransferCore

/// The file of a version, as the version sees it.
protocol VersionHome: EntryOwner {
  /// What all versions of the file share.
  var context: FileContext { get }

  /// The URL to request bytes from now; nil if the signer must make one first.
  func place(atMirror mirror: Int) -> RemoteURL?

  /// Finds the current location of the bytes, unless it has been learned meanwhile; `done` gets the
  /// failure, if any.
  func renewLocation(_ done: @escaping @Sendable (FileError?) -> Void)

  /// Carries out what `version` has decided; called without its lock.
  func perform(_ effects: VersionEffects, of version: RemoteVersion)

  /// Records the end of a response that described `version`: until then the server confirmed
  /// it.
  func responseEnded(of version: VersionID)

  /// Records a response that has shown a version other than `version`, which the caller
  /// supersedes.
  func versionContradicted(_ version: VersionID)
}
