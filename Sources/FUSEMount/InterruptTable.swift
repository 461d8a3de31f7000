internal import CFuse
internal import Glibc
internal import RemoteFileSystem
internal import Synchronization

/// The parked requests that the kernel may interrupt.
///
/// A killed process waits for the reply to its request, which is then `EINTR`.
///
/// libfuse calls back with a number instead of a pointer, because the callback may race with the
/// reply, and the parked reply may no longer exist.
final class InterruptTable: Sendable {
  private struct State {
    var last: UInt = 0
    var parked: [UInt: WeakReply] = [:]
    var sweepAt = 1024
  }

  private struct WeakReply {
    weak var reply: ParkedReply<Reply>?
    var isRegistering: Bool
    var isInterrupted = false
  }

  private let state = Mutex(State())

  func register(_ parked: ParkedReply<Reply>, request: fuse_req_t) {
    let token = state.withLock { state in
      state.last += 1
      state.parked[state.last] = WeakReply(reply: parked, isRegistering: true)
      if state.parked.count >= state.sweepAt {
        state.parked = state.parked.filter { $0.value.reply != nil }
        state.sweepAt = max(1024, state.parked.count * 2)
      }
      return state.last
    }
    // If the interrupt has already arrived, libfuse calls back immediately and continues to use the
    // request. So the request must not be answered before this call returns.
    fuse_req_interrupt_func(request, interrupted, UnsafeMutableRawPointer(bitPattern: token))
    let isInterrupted = state.withLock { state in
      state.parked[token]?.isRegistering = false
      return state.parked[token]?.isInterrupted ?? false
    }
    if isInterrupted { interrupt(token) }
  }

  fileprivate func interrupt(_ token: UInt) {
    let parked = state.withLock { state -> ParkedReply<Reply>? in
      guard state.parked[token]?.isRegistering == false else {
        state.parked[token]?.isInterrupted = true
        return nil
      }
      return state.parked.removeValue(forKey: token)?.reply
    }
    parked?.take()?.error(EINTR)
  }
}

private func interrupted(_ request: fuse_req_t?, _ token: UnsafeMutableRawPointer?) {
  guard let request, let token else { return }
  Driver.of(request)?.interrupts.interrupt(UInt(bitPattern: token))
}
