internal import CFuse
internal import CPassthrough
internal import Glibc
internal import RemoteFileSystem
internal import RemoteFiles

/// The reply to a request of libfuse.
///
/// `@unchecked Sendable`: libfuse lets any thread answer a request, and a value has one owner.
struct Reply: FileSystemReply, ~Copyable, @unchecked Sendable {
  private let request: fuse_req_t

  init(_ request: fuse_req_t) { self.request = request }

  deinit { fuse_reply_err(request, EIO) }

  /// The user of the process that sent the request (`fuse_req_ctx`).
  var userID: uid_t { fuse_req_ctx(request)?.pointee.uid ?? uid_t.max }

  consuming func error(_ errno: CInt) {
    fuse_reply_err(request, errno)
    discard self
  }

  /// Sends neither an error nor data, as for `release`.
  consuming func done() { error(0) }

  consuming func entry(_ attributes: FileAttributes) {
    var entry = fuse_entry_param()
    entry.ino = attributes.inode.rawValue
    entry.attr = attributes.values
    entry.attr_timeout = attributes.timeout
    entry.entry_timeout = FileAttributes.standardTimeout
    fuse_reply_entry(request, &entry)
    discard self
  }

  consuming func attributes(_ attributes: FileAttributes) {
    var values = attributes.values
    fuse_reply_attr(request, &values, attributes.timeout)
    discard self
  }

  consuming func open(_ handle: OpenHandle, _ mode: HandleMode) -> Bool {
    var info = fuse_file_info()
    info.fh = handle.retainedForKernel()
    let result: CInt
    switch mode {
    case .passthrough(let id): result = httpfs_passthrough_reply_open(request, &info, id)
    case .direct:
      info.direct_io = 1
      result = fuse_reply_open(request, &info)
    case .cached(let keepsPages):
      info.keep_cache = keepsPages ? 1 : 0
      result = fuse_reply_open(request, &info)
    }
    discard self
    if result != 0 { _ = OpenHandle.released(&info) }
    return result == 0
  }

  consuming func items(_ items: ArraySlice<OpenHandle.Item>, byteCount: Int) {
    var used = 0
    var buffer = [CChar](repeating: 0, count: byteCount)
    for (index, item) in zip(items.indices, items) {
      var attributes = stat()
      attributes.st_ino = ino_t(item.inode)
      attributes.st_mode = item.isDirectory ? S_IFDIR : S_IFREG
      let room = byteCount - used
      let size = buffer.withUnsafeMutableBufferPointer {
        fuse_add_direntry(
          request, $0.baseAddress.map { $0 + used }, room, item.name, &attributes,
          off_t(index + 1))
      }
      guard size <= room else { break }
      used += size
    }
    send(buffer[..<used])
  }

  /// Bytes of a remote file, spliced if they fit into a pipe, and copied if not.
  ///
  /// They are also copied if several files hold them.
  consuming func present(_ bytes: PresentBytes) {
    defer { withExtendedLifetime(bytes) {} }
    guard let first = bytes.pieces.first, bytes.byteCount > 0 else {
      fuse_reply_buf(request, nil, 0)
      discard self
      return
    }
    if bytes.pieces.count == 1, bytes.byteCount <= ReplyBuffers.longestSpliced {
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
    let request = request
    discard self
    ReplyBuffers.withBuffer(of: bytes.byteCount) { buffer in
      let error = Self.read(bytes, into: buffer)
      guard error == 0 else {
        // First, because the kernel repeats the request for each page immediately. An interrupted
        // call does not show that the file is unreadable.
        if error != EINTR { bytes.reportUnreadable() }
        fuse_reply_err(request, error == EINTR ? EINTR : EIO)
        return
      }
      _ = fuse_reply_buf(
        request, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
    }
  }

  /// Reads `bytes` from their files; returns an error number, or 0.
  private static func read(
    _ bytes: PresentBytes, into buffer: UnsafeMutableRawBufferPointer
  ) -> CInt {
    var done = 0
    for piece in bytes.pieces {
      let count = pread(
        piece.descriptor, buffer.baseAddress?.advanced(by: done), piece.byteCount,
        off_t(bytes.offset) + off_t(done))
      if count < 0 { return errno }
      guard count == piece.byteCount else { return EIO }
      done += count
    }
    return 0
  }

  consuming func bytes(_ bytes: ArraySlice<UInt8>) { send(bytes) }

  private consuming func send(_ bytes: ArraySlice<some BitwiseCopyable>) {
    let request = request
    bytes.withUnsafeBytes { buffer in
      _ = fuse_reply_buf(
        request, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
    }
    discard self
  }

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

  consuming func written(_ byteCount: Int) {
    fuse_reply_write(request, byteCount)
    discard self
  }

  consuming func statfs(_ values: statvfs) {
    var values = values
    fuse_reply_statfs(request, &values)
    discard self
  }

  consuming func parked() -> ParkedReply<Reply> {
    let request = request
    let parked = ParkedReply(self)
    Driver.of(request)?.interrupts.register(parked, request: request)
    return parked
  }
}

/// Reports the `PresentBytes` behind `context` as unreadable.
private func reportUnreadable(context: UnsafeMutableRawPointer?) {
  context?.assumingMemoryBound(to: PresentBytes.self).pointee.reportUnreadable()
}
