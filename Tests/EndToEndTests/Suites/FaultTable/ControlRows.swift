import Foundation
import Glibc
import SeededRandom
import Testing

/// Row 66 of the fault table: malicious and faulty writes to `.control`.
extension RealMounts {
  @Suite struct ControlRows {
    private static let fileCount = 4

    private func files(_ random: inout SeededGenerator) -> [RemoteTestFile] {
      RemoteTestFile.random(Self.fileCount, lengths: 1...200_000, using: &random)
    }

    private func mount(
      _ files: [RemoteTestFile], _ sandbox: Sandbox, _ origin: OriginServer, options: [String] = []
    ) throws -> Mount {
      try sandbox.mount(urls: files.map { $0.url(origin) }, options: options)
    }

    /// Expects that nothing was changed, and that every file is read correctly.
    private func expectUntouched(
      _ mount: Mount, _ files: [RemoteTestFile], _ origin: OriginServer,
      sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let status = try mount.status()
      #expect(
        status.files.allSatisfy { $0.state == "unknown" && !$0.pinned && $0.requests == 0 },
        "\(status.files.map(\.state))", sourceLocation: sourceLocation)
      #expect(try origin.requests().isEmpty, sourceLocation: sourceLocation)
      try expectRight(mount, files, sourceLocation: sourceLocation)
    }

    private func expectRight(
      _ mount: Mount, _ files: [RemoteTestFile], sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      for file in files {
        #expect(try mount.sha256(file.name) == file.digest, sourceLocation: sourceLocation)
      }
      #expect(try mount.unmount() == .exited(0), sourceLocation: sourceLocation)
    }

    @Test(
      "66 garbage is written to .control: EINVAL, and nothing is changed",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func garbage(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 66)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let files = files(&random)
      let mount = try mount(files, sandbox, origin)
      let commands = ["pause\n", "pin *\n", "evict f0.bin\n", "prefetch f1.bin f2.bin\n", "resume"]
      for _ in 0..<4 {
        let batches = (0..<25).map { _ -> [UInt8] in
          var batch: [UInt8] = []
          for _ in 0..<Int.random(in: 0...3, using: &random) {
            batch += commands.randomElement(using: &random).map { Array($0.utf8) } ?? []
          }
          let noise = (0..<Int.random(in: 0...400, using: &random)).map { _ in
            UInt8.random(in: 0...255, using: &random)
          }
          batch.insert(contentsOf: noise, at: Int.random(in: 0...batch.count, using: &random))
          // Bytes that occur in no text, so they form no command by chance.
          let evil: [UInt8] = [0xFF, 0x00, 0x1B, 0x7F, 0xC0]
          batch.insert(
            evil[Int.random(in: 0..<evil.count, using: &random)],
            at: Int.random(in: 0...batch.count, using: &random))
          return batch + [0x0A]
        }
        let results = try ControlWrite().write(batches, to: mount)
        #expect(results.count == batches.count)
        #expect(results.allSatisfy { $0 == "EINVAL" }, "\(results)")
      }
      try expectUntouched(mount, files, origin)
    }

    @Test(
      "66 a write of more than 4096 bytes to .control: EMSGSIZE, and none of it is done",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func huge(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 67)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let files = files(&random)
      let mount = try mount(files, sandbox, origin)
      let line = Array("pin f0.bin f1.bin\npause\n".utf8)
      for _ in 0..<5 {
        let byteCount = Int.random(in: 4097...60_000, using: &random)
        let batch = Array(
          Array(repeating: line, count: byteCount / line.count + 1).joined().prefix(byteCount))
        let flags = ["O_TRUNC", "O_APPEND"].randomElement(using: &random) ?? ""
        // The handle stays refused, even for a valid command.
        #expect(
          try ControlWrite(flags: flags).write([batch, line, Array(batch.prefix(9))], to: mount)
            == ["EMSGSIZE", "EMSGSIZE", "EMSGSIZE"])
      }
      // The kernel must split one write, and a buffer of the library splits the other.
      let count = Int.random(in: 1...64, using: &random) << 20
      let script = """
        import os, sys
        data = b"pause f0.bin\\n" * (int(sys.argv[2]) // 13)
        descriptor = os.open(sys.argv[1], os.O_WRONLY)
        try:
            os.write(descriptor, data)
        except OSError as error:
            print(error.errno)
        for size in (4096, 8192, 131072):
            file = open(sys.argv[1], "wb", buffering=size)
            try:
                for start in range(0, 1 << 20, 1000):
                    file.write(data[start:start + 1000])
            except OSError as error:
                print(error.errno)
            try:
                file.close()
            except OSError:
                pass
        """
      let text = try run(
        Python.command(script) + [mount.path(".control"), String(count)], within: .seconds(30))
      // A part of a buffer within a page is refused as several lines without an end.
      let numbers = text.output.split(separator: "\n")
      #expect(numbers.first == "90" && numbers.count == 4, "\(text.output)\(text.error)")
      #expect(numbers.allSatisfy { ["90", "22"].contains($0) }, "\(text.output)")
      try expectUntouched(mount, files, origin)
    }

    @Test(
      "66 many write to .control at once: each batch is done as a whole or refused as a whole",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func concurrent(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 68)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let files = files(&random)
      let mount = try mount(files, sandbox, origin)
      let names = files.map(\.name)
      // Each line concerns one file: all files end up equal only if each batch is executed as a
      // whole.
      let batches = [
        names.map { "pin \($0)\n" }, names.map { "unpin \($0)\n" },
        names.map { "pause \($0)\n" }, names.map { "resume \($0)\n" },
        ["pin \(names[0])\n", "pause \(names[1])\n", "nonsense\n"],
        ["unpin \(names[2])\n", "resume \(names[3])\n", "pin nosuch\n"],
        ["refresh \(names[0])\n", "verify *\n", "connections 3\n"],
      ].map { $0.joined() }
      let script = """
        import errno, os, random, sys, threading
        path, seed, batches = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
        wrong = []
        def work(number):
            choose = random.Random(seed * 1000 + number)
            for turn in range(40):
                text = choose.choice(batches).encode()
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
                try:
                    if os.write(descriptor, text) != len(text):
                        wrong.append("short")
                    if b"no" in text:
                        wrong.append("taken: " + str(text))
                except OSError as error:
                    if b"no" not in text or error.errno not in (errno.EINVAL, errno.ENOENT):
                        wrong.append(str(text) + str(error))
                finally:
                    os.close(descriptor)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(wrong), *wrong[:3])
        """
      let result = try output(
        of: Python.command(script) + [mount.path(".control"), String(seed)] + batches,
        within: .seconds(60))
      #expect(result == "0\n")
      let status = try mount.status().files
      #expect(Set(status.map(\.pinned)).count == 1, "\(status.map(\.pinned))")
      #expect(Set(status.map(\.state)).count == 1, "\(status.map(\.state))")
      #expect(["unknown", "paused"].contains(status[0].state))
      #expect(try origin.requests().isEmpty)
      try expectRight(mount, files)
      // The disk has the result of the last batch.
      let again = try sandbox.mount(urls: files.map { $0.url(origin) })
      #expect(Set(try again.status().files.map(\.pinned)) == [status[0].pinned])
      #expect(try again.unmount() == .exited(0))
    }

    @Test(
      "66 another user writes to .control: EACCES, and nothing is changed",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func anotherUser(seed: UInt64) throws {
      try #require(Host.isRoot, "needs root, to become another user")
      var random = SeededGenerator(seed: seed &* 100 &+ 69)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let files = files(&random)
      let open = try mount(files, sandbox, origin, options: ["--allow-other"])
      for command in ["pause\n", "evict *\n", "nonsense\n"] {
        #expect(try open.control(command, launcher: OrdinaryUserMount.asUser) == "EACCES")
      }
      let asUser = OrdinaryUserMount.asUser
      #expect(try run(asUser + ["cat", open.path(".control")]).error.contains("Permission denied"))
      let verb = try run(asUser + [try Products.httpfs, "pause", open.mountpoint])
      #expect(verb.ending == .exited(1))
      #expect(verb.error.contains("only the user who runs the mount"), "\(verb.error)")
      try expectUntouched(open, files, origin)
      let closed = try sandbox.mount(urls: files.map { $0.url(origin) }, cache: "cache2")
      #expect(try closed.control("pause\n", launcher: asUser) == "EACCES")
      #expect(try !closed.status().files.contains { $0.state == "paused" })
    }
  }
}
