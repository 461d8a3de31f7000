import Foundation

/// The bytes in the kernel's buffers between two processes of this machine.
enum SocketQueues {
  /// The maximum number of bytes between a server and its client on one connection.
  ///
  /// It is the sum of both buffers at the largest size that this kernel chooses automatically.
  static let maximumByteCount: Int64 = ["tcp_rmem", "tcp_wmem"].reduce(0) { sum, name in
    let text = try? String(contentsOfFile: "/proc/sys/net/ipv4/\(name)", encoding: .utf8)
    // Minimum, default, maximum.
    return sum + (text?.split(whereSeparator: \.isWhitespace).last.flatMap { Int64($0) } ?? 8 << 20)
  }

  /// The number of bytes that the clients of a server at this loopback port have received from the
  /// network and not read.
  ///
  /// Origin itself leaves out of its counts what lies in its own sockets at the end of a connection.
  static func unreadByteCount(port: UInt16) throws -> Int64 {
    let table = try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
    let suffix = ":" + String(format: "%04X", port)
    var byteCount: Int64 = 0
    for line in table.split(separator: "\n").dropFirst() {
      // Number, local address, remote address, state, "tx_queue:rx_queue" in hexadecimal.
      let fields = line.split(separator: " ")
      guard fields.count > 4 else { throw HarnessError("/proc/net/tcp: '\(line)'") }
      let queues = fields[4].split(separator: ":").compactMap { Int64($0, radix: 16) }
      // The receive queue of a listening socket counts connections.
      guard queues.count == 2, fields[3] != "0A" else { continue }
      if fields[2].hasSuffix(suffix) { byteCount += queues[1] }
    }
    return byteCount
  }
}
