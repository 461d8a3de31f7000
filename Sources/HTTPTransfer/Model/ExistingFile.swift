/// What becomes of a file that is already there under the name of a download.
public enum ExistingFile: Sendable, Hashable {
  /// It is replaced only where it is provably the result of an earlier download of the same URL, and
  /// nobody has changed it since; anything else fails as ``TransferError/Code/destinationExists``.
  ///
  /// The server is asked, on the condition that its version is another one. Where it is the same, the
  /// file is left as it is, and the transfer has finished: see ``TransferResult/isUnchanged``.
  case replaceResult
  /// It stays, whatever it is: the transfer fails as ``TransferError/Code/destinationExists``.
  case keep
  /// It is replaced, whatever it is.
  case replace
}
