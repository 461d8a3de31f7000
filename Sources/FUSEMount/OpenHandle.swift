internal import CFuse
internal import MountControl
internal import MountStatus
internal import RemoteFiles
internal import Synchronization

/// The object behind a file handle of the kernel.
final class OpenHandle: Sendable {
  enum Content: Sendable {
    case file(RemoteVersion, isDirect: Bool)
    /// A control file with the state of the mount.
    case status(StatusStream)
    /// `.control`, which takes commands and returns its help when it is read.
    case control(ControlHandle)
    case directory([Item])
  }

  /// An entry of a directory listing.
  struct Item: Sendable {
    let name: String
    let inode: UInt64
    let isDirectory: Bool
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

  /// The handle as the kernel stores it; one `release` balances it.
  func retainedForKernel() -> UInt64 {
    UInt64(UInt(bitPattern: Unmanaged.passRetained(self).toOpaque()))
  }

  private static func unmanaged(_ info: UnsafeMutablePointer<fuse_file_info>?)
    -> Unmanaged<OpenHandle>?
  {
    guard let info, let pointer = UnsafeRawPointer(bitPattern: UInt(info.pointee.fh)) else {
      return nil
    }
    return .fromOpaque(pointer)
  }

  /// The handle of a request that uses it.
  static func of(_ info: UnsafeMutablePointer<fuse_file_info>?) -> OpenHandle? {
    unmanaged(info)?.takeUnretainedValue()
  }

  /// The handle of a request that ends it.
  static func released(_ info: UnsafeMutablePointer<fuse_file_info>?) -> OpenHandle? {
    unmanaged(info)?.takeRetainedValue()
  }
}
