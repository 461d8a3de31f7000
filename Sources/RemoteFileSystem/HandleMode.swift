/// How the kernel reads a handle.
package enum HandleMode: Sendable {
  /// Each read is a request to the file system.
  case direct
  /// Through its page cache; it drops the pages of earlier handles unless `keepsPages`.
  case cached(keepsPages: Bool)
  /// From a backing file, directly.
  case passthrough(backingID: CInt)
}
