/// What to do with an existing file under the name of a download.
public enum ExistingFile: Sendable, Hashable {
  /// Replaces the file only if it is provably the unchanged result of an earlier download of the
  /// same URL; otherwise the transfer fails with ``TransferError/Code/destinationExists``.
  ///
  /// The server is asked for a version other than the file's. If its version is the same, the file
  /// is kept and the transfer finishes: see ``TransferResult/isUnchanged``.
  case replaceResult
  /// Keeps any file: the transfer fails with ``TransferError/Code/destinationExists``.
  case keep
  /// Replaces any file.
  case replace
}
