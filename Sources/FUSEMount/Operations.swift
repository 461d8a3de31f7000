internal import CFuse
internal import Glibc
internal import RemoteFileSystem

// The callbacks of libfuse, which calls them on its own threads. They are file-scope functions,
// because a closure made in main would inherit the main actor's isolation and trap elsewhere.

extension Driver {
  /// The operations that httpfs implements; libfuse answers ENOSYS to the others.
  static func operations() -> fuse_lowlevel_ops {
    var operations = fuse_lowlevel_ops()
    operations.`init` = answerInit
    operations.lookup = answerLookup
    operations.forget = answerForget
    operations.forget_multi = answerForgetMany
    operations.getattr = answerGetAttributes
    operations.opendir = answerOpenDirectory
    operations.readdir = answerReadDirectory
    operations.releasedir = answerReleaseDirectory
    operations.open = answerOpen
    operations.read = answerRead
    operations.write = answerWrite
    operations.setattr = answerSetAttributes
    operations.release = answerRelease
    operations.statfs = answerStatistics
    operations.getxattr = answerExtendedAttribute
    operations.listxattr = answerExtendedAttributeNames
    // Operations that would change the file system.
    operations.mknod = { request, _, _, _, _ in refuse(request) }
    operations.mkdir = { request, _, _, _ in refuse(request) }
    operations.unlink = { request, _, _ in refuse(request) }
    operations.rmdir = { request, _, _ in refuse(request) }
    operations.symlink = { request, _, _, _ in refuse(request) }
    operations.rename = { request, _, _, _, _, _ in refuse(request) }
    operations.link = { request, _, _, _ in refuse(request) }
    operations.create = { request, _, _, _, _ in refuse(request) }
    return operations
  }
}

/// The file system that a request belongs to.
private func fileSystem(of request: fuse_req_t) -> FileSystem? { Driver.of(request)?.fileSystem }

private func refuse(_ request: fuse_req_t?) {
  guard let request else { return }
  Reply(request).error(EROFS)
}

private func answerInit(
  _ context: UnsafeMutableRawPointer?, _ connection: UnsafeMutablePointer<fuse_conn_info>?
) {
  guard let context, let connection else { return }
  let driver = Unmanaged<Driver>.fromOpaque(context).takeUnretainedValue()
  let offered = connection.pointee.capable
  // Do not use FUSE_CAP_SPLICE_MOVE: the kernel would try, page by page, to take pages from the
  // cache file, which made read-ahead of a cached file a fifth slower.
  connection.pointee.want |= offered & UInt32(FUSE_CAP_SPLICE_WRITE)
  connection.pointee.want |= offered & UInt32(FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS)
  // The bytes of an inode never change, so no page must be invalidated.
  connection.pointee.want &= ~UInt32(FUSE_CAP_AUTO_INVAL_DATA)
  // Read-ahead requests beyond this number wait in the kernel, where one stalled file would delay
  // the others. The default is 12.
  connection.pointee.max_background = 16_384
  connection.pointee.congestion_threshold = 12_288
  driver.kernelIsReady()
}

private func answerLookup(
  _ request: fuse_req_t?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?
) {
  guard let request, let name, let fileSystem = fileSystem(of: request) else { return }
  fileSystem.lookup(parent, String(cString: name), Reply(request))
}

private func answerForget(_ request: fuse_req_t?, _ number: fuse_ino_t, _ count: UInt64) {
  guard let request else { return }
  fileSystem(of: request)?.forget(number, count: count)
  fuse_reply_none(request)
}

private func answerForgetMany(
  _ request: fuse_req_t?, _ count: Int, _ forgets: UnsafeMutablePointer<fuse_forget_data>?
) {
  guard let request else { return }
  if let forgets, let fileSystem = fileSystem(of: request) {
    for item in UnsafeBufferPointer(start: forgets, count: count) {
      fileSystem.forget(item.ino, count: item.nlookup)
    }
  }
  fuse_reply_none(request)
}

private func answerGetAttributes(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request, let fileSystem = fileSystem(of: request) else { return }
  fileSystem.attributes(number, Reply(request))
}

private func answerOpenDirectory(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request, let fileSystem = fileSystem(of: request) else { return }
  fileSystem.openDirectory(number, Reply(request))
}

private func answerReadDirectory(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ size: Int, _ offset: off_t,
  _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request, let fileSystem = fileSystem(of: request) else { return }
  let reply = Reply(request)
  guard let handle = OpenHandle.of(info) else { return reply.error(EBADF) }
  fileSystem.readDirectory(handle, offset: Int64(offset), byteCount: size, reply)
}

private func answerReleaseDirectory(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request else { return }
  _ = OpenHandle.released(info)
  Reply(request).done()
}

private func answerOpen(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request, let info, let fileSystem = fileSystem(of: request) else { return }
  fileSystem.open(number, flags: info.pointee.flags, Reply(request))
}

private func answerRead(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ size: Int, _ offset: off_t,
  _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request, let fileSystem = fileSystem(of: request) else { return }
  let reply = Reply(request)
  guard let handle = OpenHandle.of(info) else { return reply.error(EBADF) }
  fileSystem.read(handle, offset: Int64(offset), byteCount: size, reply)
}

private func answerWrite(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ bytes: UnsafePointer<CChar>?, _ size: Int,
  _ offset: off_t, _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request, let fileSystem = fileSystem(of: request) else { return }
  let reply = Reply(request)
  guard let handle = OpenHandle.of(info) else { return reply.error(EBADF) }
  fileSystem.write(handle, UnsafeRawBufferPointer(start: bytes, count: size), reply)
}

private func answerSetAttributes(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ attributes: UnsafeMutablePointer<stat>?,
  _ valid: CInt, _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request, let fileSystem = fileSystem(of: request) else { return }
  let changesAccess = valid & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID) != 0
  fileSystem.setAttributes(number, changesAccess: changesAccess, Reply(request))
}

private func answerRelease(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request else { return }
  if let handle = OpenHandle.released(info) { fileSystem(of: request)?.release(number, handle) }
  Reply(request).done()
}

private func answerExtendedAttribute(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ size: Int
) {
  guard let request, let name, let fileSystem = fileSystem(of: request) else { return }
  fileSystem.extendedAttribute(String(cString: name), of: number, room: size, Reply(request))
}

private func answerExtendedAttributeNames(
  _ request: fuse_req_t?, _ number: fuse_ino_t, _ size: Int
) {
  guard let request, let fileSystem = fileSystem(of: request) else { return }
  fileSystem.extendedAttributeNames(of: number, room: size, Reply(request))
}

private func answerStatistics(_ request: fuse_req_t?, _ number: fuse_ino_t) {
  guard let request, let fileSystem = fileSystem(of: request) else { return }
  fileSystem.statistics(Reply(request))
}
