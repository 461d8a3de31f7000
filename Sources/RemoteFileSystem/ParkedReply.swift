internal import Synchronization

/// A reply stored in a closure or a list, which cannot hold a noncopyable value.
package final class ParkedReply<Reply: FileSystemReply & ~Copyable>: Sendable {
  private let reply: Mutex<Reply?>

  package init(_ reply: consuming sending Reply) { self.reply = Mutex(reply) }

  /// Returns the reply the first time, and nil after that.
  package func take() -> Reply? {
    reply.withLock { $0.take() }
  }
}
