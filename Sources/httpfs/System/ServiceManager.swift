import CLinux
import Glibc

/// The service manager that has started this process, if any: systemd, or another one that supports
/// sd_notify(3).
///
/// Implemented here, because libsystemd is a large library for one datagram.
struct ServiceManager: Sendable {
  private static let variable = "NOTIFY_SOCKET"

  /// The manager's socket: a path, or an abstract name (unix(7)) after `@`; nil without a manager.
  private let socketName: String?

  /// Takes the socket from the environment.
  ///
  /// Child processes, such as the watchdog, do not get it, because they have nothing to report.
  ///
  /// Call this before other threads start, because they may read the environment.
  init() {
    socketName = environmentVariable(Self.variable)
    unsetenv(Self.variable)
  }

  /// Whether a service manager has started this process.
  var isPresent: Bool { socketName != nil }

  /// Notifies the manager; the mount works even if that fails.
  func notify(_ state: ServiceState) {
    guard let socketName else { return }
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    let microseconds = UInt64(now.tv_sec) * 1_000_000 + UInt64(now.tv_nsec) / 1000
    send(state.assignments(process: getpid(), microseconds: microseconds), to: socketName)
  }

  private func send(_ text: String, to name: String) {
    guard name.hasPrefix("/") || name.hasPrefix("@") else { return }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var path = Array(name.utf8)
    // A path ends with a NUL; an abstract name begins with one.
    let isAbstract = name.hasPrefix("@")
    if isAbstract { path[0] = 0 } else { path.append(0) }
    guard path.count <= MemoryLayout.size(ofValue: address.sun_path) else { return }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let start = MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? MemoryLayout<sa_family_t>.size
    let addressLength = socklen_t(start + path.count)

    let descriptor = socket(
      AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    // A manager that does not read must not delay the mount.
    var limit = timeval(tv_sec: 1, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let bytes = Array(text.utf8)
    withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        _ = sendto(
          descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), generic, addressLength)
      }
    }
  }
}
