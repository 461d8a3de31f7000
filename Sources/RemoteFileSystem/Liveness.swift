internal import Glibc
internal import HTTPTransferCore
internal import RemoteFiles

/// Answers `statfs`, which the watchdog also uses to check whether the mount still answers.
///
/// `statfs` is the only request whose reply the kernel does not cache and for which it takes no
/// directory lock. A reply shows that the request has reached a thread of the driver. While
/// exchanges are in progress, the reply also passes through the network thread, on which every
/// deadline of a read depends. An idle network thread has ended and is not started for this.
struct Liveness: Sendable {
  let tree: MountedTree
  let environment: FileEnvironment

  func statistics(_ reply: consuming sending some FileSystemReply & ~Copyable) {
    let byteCount = tree.current.existingFiles.reduce(Int64(0)) {
      $0.saturatingSum($1.knownLength ?? 0)
    }
    var values = statvfs()
    values.f_bsize = 4096
    values.f_frsize = 4096
    values.f_blocks = fsblkcnt_t(max(0, byteCount) / 4096)
    values.f_namemax = 255
    values.f_flag = UInt(ST_RDONLY)
    let parked = ParkedReply(reply)
    environment.afterNetworkTurn { [values] in parked.take()?.statfs(values) }
  }
}
