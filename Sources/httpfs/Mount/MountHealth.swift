import Dispatch
import LinuxSystem
import Synchronization

/// Whether the process of a mount serves it.
enum MountHealth: String {
  case ok
  /// The process has ended.
  case dead
  /// There is no answer within ``timeout``.
  case hangs

  private static let timeout = DispatchTimeInterval.seconds(2)

  /// The answer, which may come late.
  private final class Answer: Sendable {
    let group = DispatchGroup()
    let isDead = Mutex(false)
  }

  /// Asks the mount.
  init(of mount: MountTable.Entry) {
    let mountpoint = mount.mountpoint
    let answer = Answer()
    answer.group.enter()
    // Use a separate thread: while there is no answer, it cannot even be killed.
    DispatchQueue.global().async {
      let isDead = isFUSEMountDead(at: mountpoint)
      answer.isDead.withLock { $0 = isDead }
      answer.group.leave()
    }
    guard answer.group.wait(timeout: .now() + Self.timeout) == .success else {
      self = .hangs
      return
    }
    self = answer.isDead.withLock { $0 } ? .dead : .ok
  }
}
