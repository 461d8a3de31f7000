import Foundation
import Glibc

/// The socket of a service manager (sd_notify(3)), on which a test listens.
final class NotifySocket {
  /// The value for `NOTIFY_SOCKET`: a path, or an abstract name after `@`.
  let name: String
  private let descriptor: CInt

  /// Listens on the socket.
  ///
  /// - Throws: `HarnessError` if the name is taken or too long.
  init(name: String) throws {
    self.name = name
    descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw HarnessError.systemCall("socket") }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let isAbstract = name.hasPrefix("@")
    let path = isAbstract ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8) + [0]
    guard path.count <= MemoryLayout.size(ofValue: address.sun_path) else {
      throw HarnessError("too long for a socket: \(name)")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
    let isBound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
    }
    guard isBound == 0 else { throw HarnessError.systemCall("bind to \(name)") }
  }

  deinit { close(descriptor) }

  /// The assignments in the next message.
  ///
  /// - Throws: `HarnessError` if no message arrives in time.
  func next(within limit: Duration = .seconds(20)) throws -> [String: String] {
    var assignments: [String: String] = [:]
    for line in try nextText(within: limit).split(separator: "\n") {
      let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      assignments[String(parts[0])] = parts.count == 2 ? String(parts[1]) : ""
    }
    return assignments
  }

  /// The text of the next message.
  ///
  /// - Throws: `HarnessError` if no message arrives in time.
  func nextText(within limit: Duration = .seconds(20)) throws -> String {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&request, 1, CInt(limit.seconds * 1000)) == 1 else {
      throw HarnessError("no message on \(name) within \(limit)")
    }
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count >= 0 else { throw HarnessError.systemCall("recv") }
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }
}
