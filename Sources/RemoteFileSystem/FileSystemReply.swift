package import Glibc
package import RemoteFiles

/// The reply to a request of the kernel.
///
/// It is sent exactly once, because every way to send it consumes the value. A dropped reply sends
/// `EIO`, so that no request can be forgotten.
package protocol FileSystemReply: ~Copyable, Sendable {
  /// The user of the process that sent the request.
  var userID: uid_t { get }

  consuming func error(_ errno: CInt)

  /// The inode of a name.
  consuming func entry(_ attributes: FileAttributes)

  consuming func attributes(_ attributes: FileAttributes)

  /// - Returns: whether the kernel accepted the open; if not, no `release` will follow.
  consuming func open(_ handle: OpenHandle, _ mode: HandleMode) -> Bool

  /// As many names of a directory as fit into `byteCount` bytes; the index of each is its offset.
  consuming func items(_ items: ArraySlice<OpenHandle.Item>, byteCount: Int)

  /// Bytes of a remote file.
  consuming func present(_ bytes: PresentBytes)

  consuming func bytes(_ bytes: ArraySlice<UInt8>)

  /// The value of an extended attribute, or the names of all; if `room` is 0, only its size.
  consuming func extendedAttribute(_ bytes: [UInt8], room: Int)

  /// The number of bytes that a write accepted.
  consuming func written(_ byteCount: Int)

  consuming func statfs(_ values: statvfs)

  /// Parks the reply; if the kernel interrupts the request, the driver takes it and sends `EINTR`.
  consuming func parked() -> ParkedReply<Self>
}
