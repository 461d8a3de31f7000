internal import CFuse
internal import CPassthrough
internal import Glibc
internal import RemoteFiles
internal import Synchronization

/// The reply to a request of the kernel.
///
/// It is sent exactly once, because every way to send it consumes the value. A dropped reply sends
/// `EIO`, so that no request can be forgotten.
///
/// `@unchecked Sendable`: libfuse lets any thread answer a request, and a value has one owner.
struct Reply: ~Copyable, @unchecked Sendable {
  let request: fuse_req_t

  init(_ request: fuse_req_t) { self.request = request }

  deinit { fuse_reply_err(request, EIO) }

  consuming func error(_ errno: CInt) {
    fuse_reply_err(request, errno)
    discard self
  }

  /// Neither an error nor data, as for `release`.
  consuming func done() { error(0) }

  consuming func entry(_ entry: fuse_entry_param) {
    var entry = entry
    fuse_reply_entry(request, &entry)
    discard self
  }

  consuming func attributes(_ attributes: stat, timeout: Double) {
    var attributes = attributes
    fuse_reply_attr(request, &attributes, timeout)
    discard self
  }

  /// - Returns: whether the kernel accepted the open; if not, no `release` will follow.
  consuming func open(_ info: fuse_file_info, backingID: CInt?) -> Bool {
    var info = info
    let result =
      backingID.map { httpfs_passthrough_reply_open(request, &info, $0) }
      ?? fuse_reply_open(request, &info)
    discard self
    return result == 0
  }

  /// Bytes of a remote file, spliced if the kernel can; copied together if several files hold them.
  consuming func present(_ bytes: PresentBytes) {
    defer { withExtendedLifetime(bytes) {} }
    guard let first = bytes.pieces.first, bytes.byteCount > 0 else {
      fuse_reply_buf(request, nil, 0)
      discard self
      return
    }
    if bytes.pieces.count == 1 {
      let request = request
      discard self
      var bytes = bytes
      withUnsafeMutablePointer(to: &bytes) { pointer in
        httpfs_reply_file_range(
          request, first.descriptor, off_t(pointer.pointee.offset), first.byteCount,
          reportUnreadable,
          pointer)
      }
      return
    }
    var buffer = [UInt8](repeating: 0, count: bytes.byteCount)
    var done = 0
    for piece in bytes.pieces {
      let count = buffer.withUnsafeMutableBytes { buffer in
        pread(
          piece.descriptor, buffer.baseAddress?.advanced(by: done), piece.byteCount,
          off_t(bytes.offset) + off_t(done))
      }
      guard count == piece.byteCount else {
        // First, because the kernel repeats the request for each page at once.
        bytes.reportUnreadable()
        return error(EIO)
      }
      done += count
    }
    self.bytes(buffer[...])
  }

  consuming func bytes(_ bytes: ArraySlice<some BitwiseCopyable>) {
    let request = request
    bytes.withUnsafeBytes { buffer in
      _ = fuse_reply_buf(
        request, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
    }
    discard self
  }

  /// The value of an extended attribute, or the names of all; if `room` is 0, only its size.
  consuming func extendedAttribute(_ bytes: [UInt8], room: Int) {
    if room == 0 {
      fuse_reply_xattr(request, bytes.count)
      discard self
    } else if bytes.count > room {
      error(ERANGE)
    } else {
      self.bytes(bytes[...])
    }
  }

  /// The number of bytes that a write accepted.
  consuming func written(_ byteCount: Int) {
    fuse_reply_write(request, byteCount)
    discard self
  }

  consuming func statfs(_ values: statvfs) {
    var values = values
    fuse_reply_statfs(request, &values)
    discard self
  }
}

/// Reports the `PresentBytes` behind `context` as unreadable.
private func reportUnreadable(context: UnsafeMutableRawPointer?) {
  context?.assumingMemoryBound(to: PresentBytes.self).pointee.reportUnreadable()
}

/// A reply stored in a closure or a list, which cannot hold a noncopyable value.
final class ParkedReply: Sendable {
  private let reply: Mutex<Reply?>

  init(_ reply: consuming sending Reply) { self.reply = Mutex(reply) }

  /// Returns the reply the first time, and nil after that.
  func take() -> Reply? {
    reply.withLock { $0.take() }
  }
}
