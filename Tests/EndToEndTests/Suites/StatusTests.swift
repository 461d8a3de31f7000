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
          "kernel", "list", "failed_listings", "files",
        ])
      let files = try #require(object["files"] as? [[String: Any]])
      let file = try #require(files.first)
      let keys: Set = [
        "name", "url", "state", "length", "cached_bytes", "fetched_bytes",
        "speed_bytes_per_second", "eta_seconds", "connections", "requests", "retries",
        "last_error", "validator", "waiting_reads", "waiting_open", "passthrough", "pinned",
        "rate_limit_bytes_per_second",
      ]
      #expect(keys.isSubset(of: Set(file.keys)), "\(keys.subtracting(file.keys))")
      for key in ["length", "eta_seconds", "last_error", "validator", "waiting_open"] {
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

    @Test func `while a server answers nothing, no read is said to wait for a connection`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let names = (0..<8).map { "f\($0).bin" }
      let mount = try sandbox.mount(
        urls: names.map { origin.url($0, length: 64 << 20, seed: 1) },
        options: ["--connections", "2", "--read-timeout", "60"])
      for name in names { try output(of: ["stat", mount.path(name)]) }
      try origin.control("*", ["fault": "stall-head"])
      // Each file may send two requests, so half of the reads have none.
      let readers = try names.flatMap { name in
        try (1...4).map { place in
          try sandbox.start([
            "dd", "if=\(mount.path(name))", "of=/dev/null", "bs=4k", "count=1",
            "skip=\(place * 3000)",
          ])
        }
      }
      var reasons: [String] = []
      let areTrue = try Deadline(after: .seconds(20)).wait(every: .milliseconds(200)) {
        reasons = try mount.status().files.flatMap(\.waitingReads).map(\.reason)
        return reasons.count == readers.count
          && reasons.allSatisfy {
            $0.contains("no response for") || $0.contains("sent nothing for")
          }
      }
      #expect(areTrue, "\(reasons)")
      #expect(reasons.contains { $0.hasSuffix("requests of the file wait for it") }, "\(reasons)")
    }

    @Test func `a directory whose listing fails is named with the reason, until it can be listed`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      func answer(_ status: String, _ body: String) throws {
        let head =
          "HTTP/1.1 \(status)\r\nContent-Type: text/html\r\n"
          + "Content-Length: \(body.utf8.count)\r\n\r\n"
        try origin.post([
          "match": ["path": "/data/d/"], "name": "d", "actions": [["text": head + body]],
        ])
      }
      try answer("404 Not Found", "")
      let mount = try sandbox.mount(
        urls: ["http://127.0.0.1:\(origin.port)/data/d/"], options: ["--listing-ttl", "1"])
      var shown = ""
      /// Waits until a look into the directory has led to this line, or to none.
      func shows(_ line: String?) throws -> Bool {
        try Deadline(after: .seconds(20)).wait(every: .milliseconds(300)) {
          _ = try run(["ls", mount.path("d")], within: .seconds(20))
          shown = try output(of: ["cat", mount.path(".status")])
          let lines = shown.split(separator: "\n").filter { $0.contains("listing of") }
          return line.map { wanted in lines.contains { $0.hasPrefix(wanted) } } ?? lines.isEmpty
        }
      }
      #expect(try shows("no listing of 'd/': HTTP 404 Not Found; check the URL"), "\(shown)")
      let failed = try mount.status().failedListings
      #expect(failed.map(\.directory) == ["d/"])
      #expect(failed.first?.reason == "HTTP 404 Not Found; check the URL")
      #expect(failed.first?.url.hasSuffix("/data/d/") == true)
      #expect(failed.first?.showsEarlierNames == false)
      let metrics = try output(of: ["cat", mount.path(".metrics")])
      #expect(
        metrics.contains(
          "httpfs_failed_listing{directory=\"d/\",reason=\"HTTP 404 Not Found; check the URL\"} 1"),
        "\(metrics)")
      try answer("200 OK", "<a href='good.bin'>good</a>")
      #expect(try shows(nil), "\(shown)")
      #expect(try output(of: ["ls", mount.path("d")]) == "good.bin\n")
      // A later failure is shown, too, beside the names that stay.
      origin.stop()
      #expect(try shows("the listing of 'd/' may be out of date: "), "\(shown)")
      #expect(try mount.status().failedListings.first?.showsEarlierNames == true)
      #expect(try output(of: ["ls", mount.path("d")]) == "good.bin\n")
    }

    @Test func `an open that waits says why, and a failed one leaves no state 'waiting'`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("f.bin", length: 1000, seed: 1, query: "status=503")],
        options: ["--read-timeout", "4"])
      let opener = try sandbox.start(["stat", mount.path("f.bin")])
      #expect(
        try mount.waitForStatus(of: "f.bin") {
          $0.state == "waiting" && $0.waitingOpen?.reason.contains("HTTP 503") == true
        })
      let text = try output(of: ["cat", mount.path(".status")])
      #expect(text.contains(", 1 waiting open\n"), "\(text)")
      #expect(text.contains("\n    open waits "), "\(text)")
      #expect(opener.wait(within: .seconds(20)) == .exited(1))
      let file = try mount.status(of: "f.bin")
      #expect(file.state == "failed" && file.waitingOpen == nil, "\(file)")
    }

    @Test func `status of what is no httpfs mount fails`() throws {
      let sandbox = try Sandbox()
      let result = try run([try Products.httpfs, "status", sandbox.directory])
      #expect(result.ending == .exited(1))
      #expect(result.error.hasPrefix("httpfs: "))
    }
  }
}
