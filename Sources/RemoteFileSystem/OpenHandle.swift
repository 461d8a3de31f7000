internal import MountControl
internal import MountStatus
internal import RemoteFiles
internal import Synchronization

/// The object behind a file handle of the kernel.
package final class OpenHandle: Sendable {
  enum Content: Sendable {
    case file(RemoteVersion, isDirect: Bool)
    /// A control file with the state of the mount.
    case status(StatusStream)
    /// `.control`, which takes commands and returns its help when it is read.
    case control(ControlHandle)
    case directory([Item])
  }

  /// An entry of a directory listing.
  package struct Item: Sendable {
    package let name: String
    package let inode: UInt64
    package let isDirectory: Bool
  }

  /// The state of the writes over a handle of `.control`, which are processed one at a time in
  /// order.
  final class ControlHandle: Sendable {
    let writer = Mutex(ControlWriter())
  }

  let content: Content
  /// The handle's number in a trace, if one is recorded.
  let traceHandle: UInt64?

  init(_ content: Content, traceHandle: UInt64? = nil) {
    self.content = content
    self.traceHandle = traceHandle
  }
}
