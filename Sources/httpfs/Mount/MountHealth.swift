import Dispatch
import Glibc
import LinuxSystem

/// Whether the process of a mount serves it.
enum MountHealth: String {
  case ok
  /// The process has ended.
  case dead
  /// There is no answer within ``timeoutMilliseconds``.
  case hangs

  private static let timeoutMilliseconds: Int32 = 2000

  /// Asks the mount.
  init(of mount: MountTable.Entry) {
    let mountpoint = mount.mountpoint
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else {
      self = .ok
      return
    }
    let (answer, question) = (ends[0], ends[1])
    defer { close(answer) }
    // Use a separate thread: while there is no answer, it cannot even be killed.
    DispatchQueue.global().async {
      var isDead: UInt8 = isFUSEMountDead(at: mountpoint) ? 1 : 0
      _ = write(question, &isDead, 1)
      close(question)
    }
    var request = pollfd(fd: answer, events: Int16(POLLIN), revents: 0)
    guard poll(&request, 1, Self.timeoutMilliseconds) == 1 else {
      self = .hangs
      return
    }
    var isDead: UInt8 = 0
    self = read(answer, &isDead, 1) == 1 && isDead == 1 ? .dead : .ok
  }
}
