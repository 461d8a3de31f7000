internal import AccessTrace
internal import Dispatch
internal import LinuxSystem
package import Logging
internal import Synchronization

/// Writes the kernel's requests for a mount's files to a trace.
///
/// Requests are only recorded in memory; a separate queue writes them to the disk.
package final class TraceRecorder: Sendable {
  private struct State {
    var bytes: [UInt8] = []
    var lastHandle: UInt64 = 0
    var isWriting = false
    var hasFailed = false
  }

  private let descriptor: Descriptor
  private let logger: Logger
  private let start = ContinuousClock.now
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "httpfs.trace")

  /// How many bytes are collected before they are written.
  private static let batchByteCount = 64 << 10

  /// Records to an open file from its start.
  package init(descriptor: CInt, logger: Logger) {
    self.descriptor = Descriptor(descriptor)
    self.logger = logger
    state.withLock { $0.bytes = Array(AccessTrace.heading.utf8) }
  }

  /// Seconds since the start of the trace.
  var now: Double { (ContinuousClock.now - start) / .seconds(1) }

  /// Records the opening of a file.
  ///
  /// - Returns: the handle's number in the trace.
  func opened(_ name: String, length: Int64?, since start: Double) -> UInt64 {
    let handle = state.withLock { state in
      state.lastHandle += 1
      return state.lastHandle
    }
    note(
      TraceRecord(
        start: start, end: now, handle: handle, operation: .open(name: name, length: length)))
    return handle
  }

  /// Records a completed read.
  func read(_ handle: UInt64, offset: Int64, byteCount: Int64, since start: Double) {
    note(
      TraceRecord(
        start: start, end: now, handle: handle,
        operation: .read(offset: offset, byteCount: byteCount)))
  }

  func closed(_ handle: UInt64) {
    let now = now
    note(TraceRecord(start: now, end: now, handle: handle, operation: .close))
  }

  private func note(_ record: TraceRecord) {
    let mustWrite = state.withLock { state in
      guard !state.hasFailed else { return false }
      state.bytes += Array(record.line.utf8)
      guard state.bytes.count >= Self.batchByteCount, !state.isWriting else { return false }
      state.isWriting = true
      return true
    }
    if mustWrite { queue.async { self.write() } }
  }

  /// Writes all collected records, at the end of the mount.
  ///
  /// - Returns: whether they were written within `limit`.
  package func flush(within limit: Duration) -> Bool {
    let done = DispatchSemaphore(value: 0)
    queue.async { [self] in
      write()
      done.signal()
    }
    let milliseconds = Int(limit / .milliseconds(1))
    return done.wait(timeout: .now() + .milliseconds(milliseconds)) == .success
  }

  private func write() {
    let bytes = state.withLock { state in
      defer {
        state.bytes = []
        state.isWriting = false
      }
      return state.bytes
    }
    do throws(ErrorNumber) {
      try StreamCalls.write(bytes, to: descriptor.rawValue)
    } catch {
      state.withLock { $0.hasFailed = true }
      logger.error("the trace ends here: it cannot be written", metadata: ["error": "\(error)"])
    }
  }
}
