import Foundation
import Testing

/// `.status` and `.status.json`, and the commands that show them.
extension RealMounts {
  @Suite struct StatusFiles {
    private static let length: Int64 = 48 << 20

    @Test func `a download in progress is shown`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [
          origin.url("slow.bin", length: Self.length, seed: 151, query: "rate=4194304"),
          origin.url("idle.bin", length: 1000, seed: 152),
        ], options: ["--connections", "2"])
      _ = try sandbox.start(["sha256sum", mount.path("slow.bin")])
      #expect(try mount.waitForStatus(of: "slow.bin") { $0.cachedByteCount > 2 << 20 })

      let status = try mount.status()
      #expect(status.version == 1)
      #expect(status.mountpoint == mount.mountpoint)
      #expect(status.uptimeSeconds > 0)
      #expect(status.files.map(\.name).sorted() == ["idle.bin", "slow.bin"])
      let slow = try #require(status.files.first { $0.name == "slow.bin" })
      #expect(["downloading", "waiting"].contains(slow.state), "\(slow.state)")
      #expect(slow.length == Self.length)
      #expect(slow.connections >= 1)
      #expect(slow.requests >= 1)
      #expect(slow.fetchedByteCount >= slow.cachedByteCount)
      #expect(slow.validator?.hasPrefix("ETag ") == true)
      let idle = try #require(status.files.first { $0.name == "idle.bin" })
      #expect(idle.length == nil)
      #expect(idle.requests == 0)

      let text = try output(of: ["cat", mount.path(".status")], within: .seconds(5))
      #expect(text.contains("slow.bin"))
      #expect(text.contains("%"))
      #expect(
        try output(of: [try Products.httpfs, "status", mount.mountpoint]).contains("slow.bin"))
      let json = try output(of: [try Products.httpfs, "status", mount.mountpoint, "--json"])
      let decoded = try JSONDecoder().decode(MountStatusFile.self, from: Data(json.utf8))
      #expect(decoded.files.count == 2)
    }

    @Test func `the JSON has the documented keys, null where nothing is known`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("a.bin", length: 1000, seed: 153)])
      let text = try output(of: ["cat", mount.path(".status.json")])
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
      #expect(
        Set(object.keys) == [
          "version", "mountpoint", "uptime_seconds", "verifies_servers",
          "rate_limit_bytes_per_second", "timeouts", "totals", "cache",
          "kernel", "files",
        ])
      let files = try #require(object["files"] as? [[String: Any]])
      let file = try #require(files.first)
      let keys: Set = [
        "name", "url", "state", "length", "cached_bytes", "fetched_bytes",
        "speed_bytes_per_second", "eta_seconds", "connections", "requests", "retries",
        "last_error", "validator", "waiting_reads", "passthrough", "pinned",
        "rate_limit_bytes_per_second",
      ]
      #expect(keys.isSubset(of: Set(file.keys)), "\(keys.subtracting(file.keys))")
      for key in ["length", "eta_seconds", "last_error", "validator"] {
        #expect(file[key] is NSNull, "\(key)")
      }
    }

    @Test func `the status files are not listed, and hold no secret`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let secret = "hunter2"
      let url = origin.url("a.bin", length: 1000, seed: 154, query: "token=\(secret)")
        .replacingOccurrences(of: "http://", with: "http://user:\(secret)@")
      let mount = try sandbox.mount(urls: [url + "\n header=Authorization: Bearer \(secret)"])
      #expect(try mount.sha256("a.bin") == Digest.ofContent(seed: 154, byteCount: 1000))
      #expect(try output(of: ["ls", "-A", mount.mountpoint]) == "a.bin\n")
      for name in [".status", ".status.json"] {
        let text = try output(of: ["cat", mount.path(name)])
        #expect(!text.contains(secret), "\(name)")
        #expect(text.contains("a.bin"))
      }
      #expect(!mount.process.standardError.contains(secret))
      let list = try output(of: [try Products.httpfs, "list", sandbox.path("urls1.txt")])
      #expect(list.contains("a.bin") && !list.contains(secret), "\(list)")
      try mount.unmount()
      let hits = try run(["grep", "-rlF", secret, mount.cacheDirectory])
      #expect(hits.output.isEmpty, "a secret in the cache: \(hits.output)")
    }

    @Test func `status of what is no httpfs mount fails`() throws {
      let sandbox = try Sandbox()
      let result = try run([try Products.httpfs, "status", sandbox.directory])
      #expect(result.ending == .exited(1))
      #expect(result.error.hasPrefix("httpfs: "))
    }
  }
}
