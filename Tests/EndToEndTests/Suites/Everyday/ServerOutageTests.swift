import Foundation
import Glibc
import Testing

/// A server that goes away under readers, and comes back or not (row 81 of the fault table).
extension RealMounts {
  @Suite struct ServerOutages {
    private static let length: Int64 = 8 << 20

    @Test(.timeLimit(.minutes(2)))
    func `readers wait for a server that restarts, and get right bytes`() throws {
      let sandbox = try Sandbox()
      let port = try FreePort.next()
      var origin = try OriginServer(port: port)
      let urls = (0..<16).map { origin.url("\($0).bin", length: Self.length, seed: UInt64($0)) }
      let mount = try sandbox.mount(urls: urls)
      // Their lengths and first bytes are known.
      for index in 0..<16 { _ = try output(of: ["head", "-c", "1", mount.path("\(index).bin")]) }
      origin.stop()
      let readers = try (0..<16).map { index in
        try sandbox.start(["sha256sum", mount.path("\(index).bin")])
      }
      sleep(3)
      #expect(!readers.contains { !$0.isRunning })
      let waiting = try mount.status(of: "3.bin").waitingReads
      #expect(waiting.contains { $0.reason.contains("connection refused") }, "\(waiting)")
      origin = try OriginServer(port: port)
      let back = ContinuousClock.now
      var first: Duration?
      for (index, reader) in readers.enumerated() {
        #expect(reader.wait(within: .seconds(50)) == .exited(0), "\(reader.standardError)")
        first = first ?? (.now - back)
        #expect(
          reader.standardOutput.hasPrefix(
            Digest.ofContent(seed: UInt64(index), byteCount: Self.length)))
      }
      // Bytes flow again within two seconds; the first reader also has to finish.
      #expect(try #require(first) < .seconds(10))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(.timeLimit(.minutes(2)))
    func `reads of a server that has been gone for long fail at once, until it is back`() throws {
      let sandbox = try Sandbox()
      let port = try FreePort.next()
      var origin = try OriginServer(port: port)
      let url = origin.url("a.bin", length: Self.length, seed: 7)
      let never = origin.url("never.bin", length: Self.length, seed: 8)
      let mount = try sandbox.mount(
        urls: [url, never],
        options: ["--outage-timeout", "3s", "--first-answer-timeout", "2s"])
      _ = try output(of: ["head", "-c", "1", mount.path("a.bin")])
      origin.stop()
      // A file that has never answered.
      let unknown = elapsed {
        #expect(access(mount.path("never.bin"), R_OK) != 0 && errno == EIO)
      }
      #expect(unknown > .seconds(1) && unknown < .seconds(8))
      let outage = elapsed {
        let result = try? run(["tail", "-c", "1", mount.path("a.bin")], within: .seconds(30))
        #expect(result?.error.contains("Input/output error") == true)
      }
      #expect(outage < .seconds(8))
      for _ in 0..<3 {
        let later = elapsed {
          let result = try? run(["tail", "-c", "1", mount.path("a.bin")], within: .seconds(30))
          #expect(result?.error.contains("Input/output error") == true)
        }
        #expect(later < .seconds(2))
      }
      origin = try OriginServer(port: port)
      #expect(
        Deadline(after: .seconds(20)).wait(every: .milliseconds(200)) {
          (try? mount.sha256("a.bin")) == Digest.ofContent(seed: 7, byteCount: Self.length)
        })
      #expect(try mount.unmount() == .exited(0))
      _ = origin
    }
  }
}
