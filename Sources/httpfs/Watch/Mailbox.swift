import Glibc
import LinuxSystem
import Synchronization

/// Messages from other threads to a thread that waits in poll(2).
final class Mailbox<Message: Sendable>: Sendable {
  /// Readable while there are messages.
  let descriptor: Int32
  private let writeEnd: Int32
  private let messages = Mutex<[Message]>([])

  init() throws(CommandFailure) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw CommandFailure("cannot make a pipe", .last) }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    descriptor = ends[0]
    writeEnd = ends[1]
  }

  deinit {
    close(descriptor)
    close(writeEnd)
  }

  /// Adds a message; from any thread.
  func post(_ message: Message) {
    messages.withLock { $0.append(message) }
    // A full pipe wakes the reader too.
    var byte: UInt8 = 0
    _ = write(writeEnd, &byte, 1)
  }

  /// Waits for a message, at most for `limit`.
  func wait(for limit: Duration) {
    var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    poll(&waited, 1, Int32(max(0, limit / .milliseconds(1))))
  }

  /// Removes and returns all messages, in order.
  func take() -> [Message] {
    var buffer = [UInt8](repeating: 0, count: 256)
    while read(descriptor, &buffer, buffer.count) > 0 {}
    return messages.withLock { messages in
      defer { messages = [] }
      return messages
    }
  }
}
