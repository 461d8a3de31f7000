import Foundation
import Testing

/// Answers to questions about a file: what each proves, how often it is requested, and what follows
/// if it stops.
extension RealMounts {
  @Suite(.timeLimit(.minutes(3))) struct Answers {
    private static let length: Int64 = 4 << 20

    private func digest(_ seed: UInt64, version: UInt64 = 1) -> String {
      Digest.ofContent(seed: seed, version: version, byteCount: Self.length)
    }

    // MARK: Lengths

    @Test func `a length that only a later head tells is taken, and nothing is fetched for ever`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("l.bin", length: Self.length, seed: 401, query: "ranges=no")],
        options: ["--read-timeout", "10"])
      try origin.post([
        "match": ["path": "/data/l.bin", "times": 1] as [String: Any],
        "parameters": ["chunked": "yes", "rate": "2m"],
        "actions": ["head", ["body": 1 << 20], ["delay": 1500], "reset"] as [Any],
      ])
      #expect(try mount.sha256("l.bin", within: .seconds(30)) == digest(401))
      let status = try mount.status(of: "l.bin")
      #expect(status.length == Self.length && status.state == "complete")
      #expect(try origin.requests().count <= 4)
      #expect(status.requestsLastMinute == status.requests)
    }

    @Test func `a length that a later mount learns ends the file there, and is recorded`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("l.bin", length: Self.length, seed: 402, query: "chunked=1&rate=300000")
      let first = try sandbox.mount(urls: [url])
      try output(of: ["head", "-c", "100000", first.path("l.bin")])
      pause(for: .seconds(1))
      try first.unmount()
      try origin.control("/data/l.bin", ["chunked": "no", "rate": "100m"])
      try origin.clearLog()
      let second = try sandbox.mount(urls: [url], options: ["--read-timeout", "10"])
      #expect(try second.sha256("l.bin", within: .seconds(30)) == digest(402))
      #expect(try origin.requests().count <= 12)
      try second.unmount()
      origin.stop()
      let third = try sandbox.mount(urls: [url], options: ["--read-timeout", "10"])
      #expect(try third.sha256("l.bin", within: .seconds(30)) == digest(402))
      #expect(
        try output(of: ["stat", "-c", "%s", third.path("l.bin")]) == "\(Self.length)\n")
    }

    @Test func `a prefetch ends where a later answer tells the length`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("l.bin", length: Self.length, seed: 403, query: "chunked=1&rate=300000")
      let first = try sandbox.mount(urls: [url])
      try output(of: ["head", "-c", "100000", first.path("l.bin")])
      pause(for: .seconds(1))
      try first.unmount()
      try origin.control("/data/l.bin", ["chunked": "no", "rate": "100m"])
      try origin.clearLog()
      let second = try sandbox.mount(urls: [url])
      #expect(try ControlWrite().write([Array("prefetch l.bin\n".utf8)], to: second) == [nil])
      #expect(try second.waitForStatus(of: "l.bin") { $0.state == "complete" })
      pause(for: .seconds(1))
      #expect(try origin.requests().count <= 12)
    }

    @Test func `a repetition that ends before what is there is no end of the file`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("l.bin", length: Self.length, seed: 404, query: "chunked=1&rate=4m")],
        options: ["--read-timeout", "20"])
      try origin.post([
        "name": "short", "match": ["path": "/data/l.bin", "requests": 2] as [String: Any],
        "actions": ["head", ["body": 1 << 20], ["text": "0\r\n\r\n"]] as [Any],
      ])
      try origin.post([
        "name": "cut", "match": ["path": "/data/l.bin", "requests": 1] as [String: Any],
        "actions": ["head", ["body": 2 << 20], ["delay": 500], "reset"] as [Any],
      ])
      #expect(try mount.sha256("l.bin", within: .seconds(30)) == digest(404))
      #expect(try mount.status(of: "l.bin").length == Self.length)
    }

    // MARK: Heads without bodies

    @Test(arguments: ["", "ranges=no", "chunked=1"])
    func `a head whose body does not begin is given up, and the bytes are asked for again`(
      query: String
    ) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("h.bin", length: 100_000, seed: 405, query: query)],
        options: ["--read-timeout", "12"])
      try origin.post([
        "match": ["path": "/data/h.bin", "times": 1] as [String: Any],
        "actions": ["head", "stall"],
      ])
      #expect(
        try mount.sha256("h.bin", within: .seconds(11))
          == Digest.ofContent(seed: 405, byteCount: 100_000))
    }

    @Test func `a prefetch goes on after a head whose body does not begin`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("h.bin", length: Self.length, seed: 406)],
        options: ["--read-timeout", "4"])
      try origin.post([
        "match": ["path": "/data/h.bin", "times": 1] as [String: Any],
        "actions": ["head", "stall"],
      ])
      #expect(try ControlWrite().write([Array("prefetch h.bin\n".utf8)], to: mount) == [nil])
      #expect(try mount.waitForStatus(of: "h.bin") { $0.state == "complete" })
    }

    @Test func `looks at files whose bodies do not begin leave the host's places free`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let names = (0..<64).map { "bad\($0).bin" }
      let mount = try sandbox.mount(
        urls: names.map { origin.url($0, length: 65_536, seed: 407) }
          + [origin.url("good.bin", length: 65_536, seed: 408)],
        options: ["--read-timeout", "4"])
      try origin.post(["match": ["path": "/data/bad*"], "actions": ["head", "stall"]])
      let looks = try names.map { try sandbox.start(["stat", mount.path($0)]) }
      for look in looks { _ = look.wait(within: .seconds(20)) }
      pause(for: .seconds(3))
      #expect(
        try mount.sha256("good.bin", within: .seconds(20))
          == Digest.ofContent(seed: 408, byteCount: 65_536))
      #expect(
        try mount.waitForStatus(of: "bad7.bin") { $0.connections == 0 })
    }

    // MARK: Doubt

    @Test func `an error page is doubted as often as promised, whatever else has failed`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("d.bin", length: Self.length, seed: 409)],
        options: ["--read-timeout", "20"])
      try origin.post([
        "name": "page",
        "match": ["path": "/data/d.bin", "requests": ["from": 3, "to": 4]] as [String: Any],
        "parameters": ["fault": "html-200"],
      ])
      try origin.post([
        "name": "failure",
        "match": ["path": "/data/d.bin", "requests": ["to": 2]] as [String: Any],
        "parameters": ["status": 503],
      ])
      #expect(
        try output(of: ["stat", "-c", "%s", mount.path("d.bin")], within: .seconds(20))
          == "\(Self.length)\n")
      #expect(try mount.sha256("d.bin", within: .seconds(30)) == digest(409))
    }

    @Test func `no page takes the place of a version that a strong tag names`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("d.bin", length: Self.length, seed: 410)],
        options: ["--read-timeout", "4", "--revalidate", "0"])
      #expect(try mount.sha256("d.bin") == digest(410))
      #expect(try ControlWrite().write([Array("evict d.bin\n".utf8)], to: mount) == [nil])
      #expect(try mount.waitForStatus(of: "d.bin") { $0.cachedByteCount == 0 })
      try origin.control("/data/d.bin", ["fault": "html-200"])
      let read = try run(["cat", mount.path("d.bin")], within: .seconds(20))
      #expect(read.ending == .exited(1) && read.output.isEmpty)
      #expect(
        try output(of: ["stat", "-c", "%s", mount.path("d.bin")]) == "\(Self.length)\n")
      try origin.clearControl()
      pause(for: .milliseconds(1500))
      #expect(try mount.sha256("d.bin", within: .seconds(30)) == digest(410))
    }

    @Test func `one answer that calls a cached file empty is heard a second time`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("e.bin", length: 65_536, seed: 411)], options: ["--revalidate", "0"])
      let digest = Digest.ofContent(seed: 411, byteCount: 65_536)
      #expect(try mount.sha256("e.bin") == digest)
      let empty: [Any] = [
        ["text": "HTTP/1.1 416 No\r\nContent-Range: bytes */0\r\nContent-Length: 0\r\n\r\n"]
      ]
      try origin.post([
        "name": "empty", "match": ["path": "/data/e.bin", "times": 1] as [String: Any],
        "actions": empty,
      ])
      #expect(try mount.sha256("e.bin") == digest)
      try origin.post(["name": "empty", "match": ["path": "/data/e.bin"], "actions": empty])
      #expect(try output(of: ["cat", mount.path("e.bin")]).isEmpty)
    }

    // MARK: Ranges

    /// The middle of the file, which a stream from the start does not reach soon.
    private static let middle = 24 << 20

    private func readMiddle(_ mount: Mount, _ name: String) throws -> HeldFile.Reading {
      let held = try HeldFile(mount.path(name))
      defer { held.close() }
      return try held.read(at: Int64(Self.middle), 4096)
    }

    private func expectMiddle(_ mount: Mount, _ name: String, seed: UInt64) throws {
      let expected = HeldFile.Reading.bytes(
        count: 4096,
        sha256: Digest.ofContent(seed: seed, offset: Int64(Self.middle), byteCount: 4096))
      #expect(try readMiddle(mount, name) == expected)
    }

    @Test func `one answer that ignores the range says nothing of the later ones`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("s.bin", length: 48 << 20, seed: 415, query: "rate=1m")],
        options: ["--read-timeout", "6", "--revalidate", "0"])
      try origin.post([
        "match": ["path": "/data/s.bin", "times": 1] as [String: Any],
        "parameters": ["ranges": "no"],
      ])
      try output(of: ["stat", mount.path("s.bin")])
      try expectMiddle(mount, "s.bin", seed: 415)
    }

    @Test func `one answer without a length takes no ranges from a file that has had them`() throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("t.bin", length: 48 << 20, seed: 416, query: "rate=1m")],
        options: ["--read-timeout", "6", "--revalidate", "0"])
      try output(of: ["head", "-c", "100000", mount.path("t.bin")])
      try origin.post([
        "match": ["path": "/data/t.bin", "times": 1] as [String: Any],
        "parameters": ["ranges": "no", "chunked": "yes"],
      ])
      try expectMiddle(mount, "t.bin", seed: 416)
      #expect(try mount.status(of: "t.bin").retries == 0)
    }

    // MARK: Deadlines

    @Test func `opens of cached files do not keep a question alive that nobody answers`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("o.bin", length: 65_536, seed: 417)], options: ["--revalidate", "0"])
      try output(of: ["sha256sum", mount.path("o.bin")])
      // A connection that died silently.
      try origin.post([
        "match": ["path": "/data/o.bin", "times": 1] as [String: Any], "actions": ["stall"],
      ])
      try origin.clearLog()
      let openers = try (0..<4).map { number in
        pause(for: .milliseconds(700))
        return try sandbox.start([
          "sh", "-c",
          "for i in $(seq 60); do head -c 1 \(mount.path("o.bin")) > /dev/null; sleep 0.2; done",
        ])
      }
      defer { for opener in openers { opener.kill() } }
      let isAskedAgain = try Deadline(after: .seconds(14)).wait {
        try origin.requests().count > 1
      }
      #expect(isAskedAgain)
    }

    @Test func `who joins a question has a deadline of their own`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("j.bin", length: 65_536, seed: 414)],
        options: ["--read-timeout", "6", "--revalidate", "0"])
      try output(of: ["stat", mount.path("j.bin")])
      #expect(try ControlWrite().write([Array("evict j.bin\n".utf8)], to: mount) == [nil])
      #expect(try mount.waitForStatus(of: "j.bin") { $0.cachedByteCount == 0 })
      try origin.control("/data/j.bin", ["fault": "stall-head"])
      let first = try sandbox.start(["cat", mount.path("j.bin")])
      pause(for: .seconds(4))
      let second = try sandbox.start(["sha256sum", mount.path("j.bin")])
      #expect(first.wait(within: .seconds(10)) == .exited(1))
      #expect(second.isRunning)
      try origin.clearControl()
      #expect(second.wait(within: .seconds(10)) == .exited(0))
      let digest = Digest.ofContent(seed: 414, byteCount: 65_536)
      #expect(second.standardOutput.hasPrefix(digest))
    }

    @Test func `a look-up has one deadline for the names and the file together`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let page = "<a href='a.bin'>a</a>"
      try origin.post([
        "name": "page", "match": ["path": "/data/list/"],
        "actions": [
          [
            "text": "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
              + "Content-Length: \(page.utf8.count)\r\n\r\n\(page)"
          ]
        ],
      ])
      // The names arrive at the third attempt, after a quarter of the deadline each; the file never
      // arrives.
      try origin.post([
        "name": "silence",
        "match": ["path": "/data/list/", "requests": ["to": 2]] as [String: Any],
        "actions": ["stall"],
      ])
      try origin.post([
        "name": "file", "match": ["path": "/data/list/a.bin"], "actions": ["stall"],
      ])
      let mount = try sandbox.mount(
        source: "http://127.0.0.1:\(origin.port)/data/list/", options: ["--read-timeout", "12"])
      let start = ContinuousClock.now
      let result = try run(["stat", mount.path("a.bin")], within: .seconds(30))
      #expect(result.ending == .exited(1))
      let took = ContinuousClock.now - start
      #expect(took < .seconds(16), "\(took)")
    }

    // MARK: Several servers

    @Test func `a weak tag of a file's own server is believed in the next mount`() throws {
      let sandbox = try Sandbox()
      let first = try OriginServer()
      let second = try OriginServer()
      let line = [first, second].map {
        $0.url("w.bin", length: Self.length, seed: 412, query: "validators=weak")
      }.joined(separator: "\t")
      for round in 0..<2 {
        let mount = try sandbox.mount(urls: [line])
        #expect(try mount.sha256("w.bin") == digest(412))
        try mount.unmount()
        let sent = try (first.requests() + second.requests()).bodyByteCount
        if round > 0 { #expect(sent <= 65_536, "\(sent) bytes in round \(round)") }
        for origin in [first, second] { try origin.clearLog() }
      }
    }

    // MARK: Requests

    /// An answer that a server may give forever.
    struct Answer: CustomTestStringConvertible, Sendable {
      let testDescription: String
      /// A message to the Origin, as JSON.
      let rule: String
      /// The maximum number of requests for the file in 8 s: some at once, then a few per second.
      let most: Int

      init(_ name: String, _ rule: String, most: Int = 200) {
        testDescription = name
        self.rule = rule
        self.most = most
      }
    }

    /// Only requests beyond the first bytes match, so the file is known.
    private static let behind = #""match": {"path": "/data/r.bin", "range": "65536-99999999"}"#

    static let answers = [
      Answer("503", #"{\#(behind), "parameters": {"status": 503}}"#),
      Answer("403", #"{\#(behind), "parameters": {"status": 403}}"#),
      Answer("404", #"{\#(behind), "parameters": {"status": 404}}"#),
      Answer("304", #"{\#(behind), "parameters": {"status": 304}}"#),
      Answer("412", #"{\#(behind), "parameters": {"status": 412}}"#),
      Answer("416", #"{\#(behind), "parameters": {"status": 416}}"#),
      Answer("a page", #"{\#(behind), "parameters": {"fault": "html-200"}}"#),
      Answer("the whole", #"{\#(behind), "parameters": {"fault": "ignore-range", "rate": "64k"}}"#),
      Answer("an empty part", #"{\#(behind), "parameters": {"fault": "empty-206"}}"#),
      Answer(
        "one byte",
        #"""
        {\#(behind), "actions": [{"head": {"set": {"Content-Length": "1",
        "Content-Range": "bytes {first}-{first}/{length}"}}}, {"content": ["first", "first"]}]}
        """#),
      Answer("one byte, then a reset", #"{\#(behind), "actions": ["head", {"body": 1}, "reset"]}"#),
      Answer("a reset", #"{\#(behind), "actions": ["reset"]}"#),
      Answer(
        "another tag each time",
        #"{\#(behind), "actions": [{"head": {"set": {"ETag": "\"{request}\""}}}, "body"]}"#),
      // Each request for a range is redirected ten times.
      Answer(
        "a redirect loop", #"{\#(behind), "parameters": {"fault": "redirect-loop"}}"#,
        most: 200 * 11),
      Answer(
        "a part without a length",
        #"""
        {\#(behind), "actions": [{"head": {"set":
        {"Content-Range": "bytes {first}-{last}/*"}}}, "body"]}
        """#),
    ]

    @Test(arguments: answers)
    func `no answer has a file asked for without end`(answer: Answer) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("r.bin", length: 32 << 20, seed: 413)],
        options: ["--read-timeout", "3", "--revalidate", "1"])
      try output(of: ["head", "-c", "4096", mount.path("r.bin")])
      let rule = try JSONSerialization.jsonObject(with: Data(answer.rule.utf8))
      try origin.post(try #require(rule as? [String: Any]))
      try origin.clearLog()
      #expect(try ControlWrite().write([Array("prefetch r.bin\n".utf8)], to: mount) == [nil])
      // This reader reads one place after the other and ignores errors.
      _ = try run(
        ["python3", "-c", Self.stubbornReader, mount.path("r.bin"), "8"], within: .seconds(40))
      let count = try origin.requests().count
      print("\(answer.testDescription): \(count) requests in 8 s")
      #expect(count <= answer.most, "\(count) requests")
      let status = try mount.status(of: "r.bin")
      #expect((status.requestsLastMinute ?? 0) > 0)
    }

    private static let stubbornReader = """
      import os, sys, time
      end = time.monotonic() + float(sys.argv[2])
      place = 1 << 20
      while time.monotonic() < end:
          try:
              descriptor = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
          except OSError:
              time.sleep(0.02)
              continue
          try:
              while time.monotonic() < end:
                  place = (place + (1 << 18)) % (32 << 20)
                  os.pread(descriptor, 4096, place)
          except OSError:
              pass
          finally:
              os.close(descriptor)
      """
  }
}
