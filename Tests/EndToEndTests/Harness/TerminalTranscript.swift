import Foundation
import Glibc
import Synchronization

/// All bytes written to a terminal, read as they arrive, so the writer never waits.
final class TerminalTranscript: Sendable {
  private struct State {
    var bytes: [UInt8] = []
    /// Whether the reading has ended.
    var hasEnded = false
    var mustStop = false
  }

  private let master: CInt
  private let state = Mutex(State())

  /// Starts to read the master side, which the caller closes after `stop()` has returned.
  ///
  /// The slave side must be open already: the kernel reports the end when no process has it open.
  init(master: CInt) {
    self.master = master
    // Only the thread keeps the object until it ends, not its owner.
    Thread.detachNewThread { [self] in readUntilEnd() }
  }

  /// All bytes so far.
  var bytes: [UInt8] { state.withLock { $0.bytes } }

  /// Whether every process has closed the terminal and all bytes are read.
  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  /// Ends the reading, even if a process still has the terminal open.
  func stop() {
    state.withLock { $0.mustStop = true }
    _ = Deadline(after: .seconds(10)).wait { hasEnded }
  }

  private func readUntilEnd() {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while !state.withLock({ $0.mustStop }) {
      var poller = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
      guard poll(&poller, 1, 20) > 0 else { continue }
      let count = read(master, &buffer, buffer.count)
      if count > 0 {
        state.withLock { $0.bytes += buffer.prefix(count) }
      } else if count == 0 || (errno != EINTR && errno != EAGAIN) {
        // EIO: the last process has closed its side, and all its bytes have been read.
        break
      }
    }
    state.withLock { $0.hasEnded = true }
  }
}
