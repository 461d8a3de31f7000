import Foundation
import Testing

/// httpfs invents no fact that a server omits, and trusts no fact that a server invents.
extension RealMounts {
  @Suite struct UnknownLengths {
    @Test func `a body without length and validator is never joined to an older one`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 4 << 20
      let url = origin.url(
        "u.bin", length: length, seed: 71, query: "chunked=1&validators=none&rate=500000")
      let first = try sandbox.mount(urls: [url])
      // The mount is killed in the middle of the stream, with a part of it in the cache.
      try output(of: ["head", "-c", "1000000", first.path("u.bin")])
      try first.crash()
      try origin.control("/data/u.bin", ["version": "2", "rate": "100000000"])
      let second = try sandbox.mount(urls: [url])
      var answers = 0
      for _ in 0..<4 {
        let result = try run(["sha256sum", second.path("u.bin")], within: .seconds(30))
        guard result.ending == .exited(0) else { continue }
        answers += 1
        let digest = Digest.ofContent(seed: 71, version: 2, byteCount: length)
        #expect(result.output.prefix(64) == digest)
      }
      #expect(answers > 0)
    }

    @Test func `a complete body without length and validator is fetched anew when it changes`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url(
        "u.bin", length: 100_000, seed: 72, query: "chunked=1&validators=none")
      let mount = try sandbox.mount(urls: [url])
      #expect(
        try mount.sha256("u.bin") == Digest.ofContent(seed: 72, version: 1, byteCount: 100_000))
      try origin.control("/data/u.bin", ["version": "2"])
      pause(for: .milliseconds(1500))
      #expect(
        try mount.sha256("u.bin") == Digest.ofContent(seed: 72, version: 2, byteCount: 100_000))
    }

    @Test func `a file looked at while its length is unknown is read to its end`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 3 << 20
      let url = origin.url("u.bin", length: length, seed: 73, query: "chunked=1&rate=2000000")
      let mount = try sandbox.mount(urls: [url])
      let early = try output(of: ["stat", "--format=%s", mount.path("u.bin")])
      #expect(try #require(Int64(early.dropLast())) > 0)
      #expect(try mount.waitForStatus(of: "u.bin") { $0.state == "complete" })
      #expect(try mount.sha256("u.bin") == Digest.ofContent(seed: 73, byteCount: length))
      let late = try output(of: ["stat", "--format=%s", mount.path("u.bin")])
      #expect(late == "\(length)\n")
    }

    @Test func `a long, fast body without length and validator is read to its end`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 160 << 20
      let mount = try sandbox.mount(
        urls: [origin.url("u.bin", length: length, seed: 76, query: "chunked=1&validators=none")])
      #expect(try mount.sha256("u.bin") == Digest.ofContent(seed: 76, byteCount: length))
    }

    @Test func `a body without length goes on where an earlier mount left off`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 4 << 20
      let url = origin.url("u.bin", length: length, seed: 77, query: "chunked=1&rate=300000")
      let first = try sandbox.mount(urls: [url])
      try output(of: ["head", "-c", "100000", first.path("u.bin")])
      try first.crash()
      try origin.control("/data/u.bin", ["rate": "100000000"])
      let second = try sandbox.mount(urls: [url])
      #expect(try second.status(of: "u.bin").state == "unknown")
      #expect(try second.sha256("u.bin") == Digest.ofContent(seed: 77, byteCount: length))
    }

    @Test func `what nothing can confirm opens even if every open is to be confirmed`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("u.bin", length: 9000, seed: 78, query: "chunked=1&validators=none")],
        options: ["--revalidate", "0"])
      for _ in 0..<3 {
        #expect(try mount.sha256("u.bin") == Digest.ofContent(seed: 78, byteCount: 9000))
      }
    }

    @Test func `a killed reader of a stream leaves no requests behind`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [
          origin.url("u.bin", length: 1 << 30, seed: 79, query: "chunked=1&rate=30000000")
        ])
      let reader = try ChildProcess(["cat", mount.path("u.bin")])
      #expect(try mount.waitForStatus(of: "u.bin") { $0.cachedByteCount > 80 << 20 })
      reader.signal(SIGKILL)
      _ = reader.wait(within: .seconds(10))
      let before = try origin.requests().count
      pause(for: .milliseconds(4500))
      #expect(try origin.requests().count <= before + 1)
      #expect(try mount.waitForStatus(of: "u.bin") { $0.connections == 0 })
    }

    private static let copies = [
      // sendfile(2), which no other common command uses.
      "import shutil, sys; shutil.copyfile(sys.argv[1], sys.argv[2])",
      // splice(2), by a program that does not read the size.
      """
      import os, sys
      source = os.open(sys.argv[1], os.O_RDONLY); reader, writer = os.pipe()
      with open(sys.argv[2], "wb") as copy:
        while count := os.splice(source, writer, 65536): copy.write(os.read(reader, count))
      """,
    ]

    @Test(arguments: copies)
    func `a file of unknown length is copied whole by the kernel`(copy: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url(
        "u.bin", length: 3_000_001, seed: 80, query: "chunked=1&ranges=no&rate=1000000")
      let mount = try sandbox.mount(urls: [url])
      let target = sandbox.directory + "/copy"
      try output(of: ["python3", "-c", copy, mount.path("u.bin"), target])
      #expect(
        try output(of: ["sha256sum", target]).prefix(64)
          == Digest.ofContent(seed: 80, byteCount: 3_000_001))
    }

    @Test func `the kernel copies a file whole of which an earlier mount has a part`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url(
        "u.bin", length: 3_000_001, seed: 81, query: "chunked=1&ranges=no&rate=300000")
      let first = try sandbox.mount(urls: [url])
      try output(of: ["head", "-c", "100000", first.path("u.bin")])
      try first.crash()
      try origin.control("/data/u.bin", ["rate": "1500000"])
      let second = try sandbox.mount(urls: [url])
      let target = sandbox.directory + "/copy"
      try output(of: ["python3", "-c", Self.copies[0], second.path("u.bin"), target])
      #expect(
        try output(of: ["sha256sum", target]).prefix(64)
          == Digest.ofContent(seed: 81, byteCount: 3_000_001))
    }

    /// Repeatedly maps a file at its current length.
    ///
    /// It prints how many of the last pages contained zeros or could not be read.
    private static let mapper = """
      import mmap, os, sys, time
      file = os.open(sys.argv[1], os.O_RDONLY); reader, writer = os.pipe()
      seen, wrong, end = set(), 0, time.time() + 5
      while time.time() < end:
        size = os.fstat(file).st_size
        if size:
          page = (size - 1) // 4096 * 4096; seen.add(size)
          with mmap.mmap(file, size, mmap.MAP_PRIVATE, mmap.PROT_READ) as view:
            try:
              os.write(writer, memoryview(view)[page:size])
              wrong += os.read(reader, 4096) != os.pread(file, size - page, page)
            except OSError: wrong += 1
        time.sleep(0.005)
      print(wrong, len(seen) > 5)
      """

    @Test func `what stat shows of a growing file can be mapped`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      // The open stops waiting for the length, and the mapping grows with the file.
      let url = origin.url(
        "u.bin", length: 6_000_001, seed: 82, query: "chunked=1&ranges=no&rate=400000")
      let mount = try sandbox.mount(urls: [url])
      let shown = try output(of: ["python3", "-c", Self.mapper, mount.path("u.bin")])
      #expect(shown == "0 True\n")
      #expect(try mount.sha256("u.bin") == Digest.ofContent(seed: 82, byteCount: 6_000_001))
    }

    @Test func `an endless file is opened after 5 s, and again at once`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url(
        "u.bin", length: 1 << 30, seed: 83, query: "chunked=1&ranges=no&rate=200000")
      let mount = try sandbox.mount(urls: [url])
      // The shell has opened both names before either file is read.
      let both = try run(
        ["bash", "-c", "exec 3<\"$0\" 4<\"$0\"; head -c 1000 <&3 | wc -c", mount.path("u.bin")])
      #expect(both.output == "1000\n")
      #expect(both.duration > .seconds(4))
      #expect(both.duration < .seconds(9))
    }

    @Test(arguments: [Int64.max, 1 << 61])
    func `a length that no file has is refused, and the mount lives on`(length: Int64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [
          origin.url("huge.bin", length: length, seed: 74),
          origin.url("good.bin", length: 5000, seed: 75),
        ], options: ["--read-timeout", "2"])
      let result = try run(["stat", mount.path("huge.bin")], within: .seconds(15))
      #expect(result.ending == .exited(1))
      #expect(try mount.sha256("good.bin") == Digest.ofContent(seed: 75, byteCount: 5000))
    }
  }
}
