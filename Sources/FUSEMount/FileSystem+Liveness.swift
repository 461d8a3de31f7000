internal import Glibc
internal import HTTPTransfer
internal import RemoteFiles

extension FileSystem {
  /// Answers a `statfs`, which is also how the watchdog asks whether the mount still answers.
  ///
  /// Of all requests it is the one for which the kernel keeps no answer and takes no lock of a
  /// directory. That it is answered shows that it has reached a libfuse thread; while exchanges are
  /// under way it goes through the network thread as well, on which every deadline of a read
  /// depends. An idle network thread has ended and is not started for this.
  func replyInTurn(_ values: statvfs, _ reply: consuming sending Reply) {
    guard environment.client.activeExchangeCount > 0 else { return reply.statfs(values) }
    let parked = ParkedReply(reply)
    environment.client.perform { parked.take()?.statfs(values) }
  }
}
