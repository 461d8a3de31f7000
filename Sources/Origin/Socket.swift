import Glibc

/// A connected TCP socket, which its connection's thread owns and closes at its end.
final class Socket {
  /// The client disconnected, or the connection broke: no more bytes can be sent or received.
  struct Disconnected: Error {}

  /// The poll(2) flag for a peer that closed its sending side.
  ///
  /// Swift does not import it, because the header defines it only for _GNU_SOURCE.
  private static let pollReadHangUp: Int16 = 0x2000

  /// The interval of checks for a disconnected local client, in milliseconds.
  private static let peerInterval: Int32 = 100

  private let descriptor: Int32

  /// Takes ownership of a descriptor.
  init(descriptor: Int32) {
    self.descriptor = descriptor
    var one: Int32 = 1
    // Small responses must not wait for an acknowledgement.
    setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
  }

  deinit { close(descriptor) }

  /// Receives at least one byte into the buffer; 0 at the end of the stream (recv(2)).
  func receive(into buffer: UnsafeMutableRawBufferPointer) throws(Disconnected) -> Int {
    while true {
      let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count >= 0 { return count }
      if errno != EINTR { throw Disconnected() }
    }
  }

  /// Sends all bytes; `sent` is called with each part that the kernel took (send(2), MSG_NOSIGNAL).
  ///
  /// `isMoreComing` lets a packet wait for the next bytes (MSG_MORE).
  func send(
    _ bytes: UnsafeRawBufferPointer, isMoreComing: Bool = false, sent: (Int) -> Void = { _ in }
  ) throws(Disconnected) {
    let flags = Int32(MSG_NOSIGNAL) | (isMoreComing ? Int32(MSG_MORE) : 0)
    var position = 0
    while position < bytes.count {
      let count = Glibc.send(
        descriptor, UnsafeRawBufferPointer(rebasing: bytes[position...]).baseAddress,
        bytes.count - position, flags)
      if count >= 0 {
        position += count
        sent(count)
      } else if errno != EINTR {
        throw Disconnected()
      }
    }
  }

  /// Waits, and notices when the client disconnects meanwhile (poll(2), POLLRDHUP).
  ///
  /// - Parameters:
  ///   - deadline: in nanoseconds of the monotonic clock; nil waits until the client disconnects.
  ///   - hasUnread: whether the client sends more than is read. Only a check of the kernel's table
  ///     then shows that a local client disconnects.
  /// - Throws: when the client has disconnected.
  func wait(until deadline: Int64?, hasUnread: Bool = false) throws(Disconnected) {
    var entry = pollfd(fd: descriptor, events: Self.pollReadHangUp, revents: 0)
    var peer: LocalPeer?
    if hasUnread {
      peer = LocalPeer(
        clientPort: OriginSystem.port(of: descriptor, named: getpeername),
        ownPort: OriginSystem.port(of: descriptor, named: getsockname))
    }
    while true {
      var timeout: Int32 = peer == nil ? -1 : Self.peerInterval
      if let deadline {
        let remaining = deadline - OriginSystem.monotonicNanoseconds()
        guard remaining > 0 else { return }
        // poll counts in milliseconds, but a smooth rate needs shorter waits.
        if remaining < 1_000_000 {
          OriginSystem.sleep(until: deadline)
          return
        }
        let milliseconds = Int32(clamping: remaining / 1_000_000)
        timeout = timeout < 0 ? milliseconds : min(timeout, milliseconds)
      }
      if poll(&entry, 1, timeout) > 0 || peer?.hasClosed() == true { throw Disconnected() }
    }
  }

  /// The bytes sent that the client's kernel has not acknowledged (ioctl(2) SIOCOUTQ, tcp(7)).
  var unacknowledgedByteCount: Int {
    var count: Int32 = 0
    return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
  }

  /// Limits how much the kernel receives ahead of our reads (SO_RCVBUF, socket(7)).
  ///
  /// 256 KiB: with less than a few of loopback's packets of 64 KiB, the client's kernel would send
  /// only when its timer of 200 ms expires.
  func limitReceiveBuffer() {
    var byteCount: Int32 = 256 << 10
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVBUF, &byteCount, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Closes the sending side, and reads for a moment until the client closes.
  ///
  /// A close with unread bytes would send RST, which may destroy the end of the response at the
  /// client. Without draining, the client gets a second for the response, and then that RST.
  func finish(isDraining: Bool = true) {
    shutdown(descriptor, Int32(SHUT_WR))
    let deadline = OriginSystem.monotonicNanoseconds() + 1_000_000_000
    if !isDraining {
      try? wait(until: deadline)
      return
    }
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 16) { buffer in
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      while true {
        let remaining = (deadline - OriginSystem.monotonicNanoseconds()) / 1_000_000
        guard remaining > 0, poll(&entry, 1, Int32(remaining)) > 0,
          recv(descriptor, buffer.baseAddress, buffer.count, 0) > 0
        else { return }
      }
    }
  }

  /// Makes the following close send RST.
  ///
  /// First waits until the client's kernel has received the sent bytes, because RST discards the
  /// rest.
  ///
  /// SO_LINGER with 0 seconds, socket(7).
  func prepareReset() {
    let deadline = OriginSystem.monotonicNanoseconds() + 2_000_000_000
    while unacknowledgedByteCount > 0, OriginSystem.monotonicNanoseconds() < deadline {
      usleep(1000)
    }
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }
}
