internal import HTTPTransferCore

/// The file of a version, as the version sees it.
protocol VersionHome: EntryOwner {
  /// What all versions of the file share.
  var context: FileContext { get }

  /// Where bytes are asked for now; nil if the signer must make a URL first.
  func place(atMirror mirror: Int) -> RemoteURL?

  /// Finds out where the bytes are now, unless that has been learned meanwhile; `done` gets the
  /// failure, if there is one.
  func renewLocation(_ done: @escaping @Sendable (FileError?) -> Void)

  /// Carries out what `version` has decided; called without its lock.
  func perform(_ effects: VersionEffects, of version: RemoteVersion)

  /// A response that described `version` has come to its end: until now that was the server's word.
  func responseEnded(of version: VersionID)

  /// A response has shown another version than `version`, which the caller supersedes.
  func versionContradicted(_ version: VersionID)
}
