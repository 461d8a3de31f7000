internal import Glibc
internal import RemoteFiles

extension FileSystem {
  /// Answers a `statfs`, which the watchdog also uses to check whether the mount still answers.
  ///
  /// `statfs` is the only request whose reply the kernel does not cache and for which it takes no
  /// directory lock. A reply shows that the request has reached a libfuse thread. While exchanges
  /// are in progress, the reply also passes through the network thread, on which every deadline of
  /// a read depends. An idle network thread has ended and is not started for this.
  func replyInTurn(_ values: statvfs, _ reply: consuming sending Reply) {
    let parked = ParkedReply(reply)
    environment.afterNetworkTurn { parked.take()?.statfs(values) }
  }
}
