import Foundation
import Glibc
import SeededRandom
import Testing

/// Rows 59 to 64 of the fault table: invalid or hostile lists.
extension RealMounts {
  @Suite struct InputRows {
    /// A list of valid lines with one invalid line at a place that the seed determines.
    private struct SpoiltList {
      let bytes: [UInt8]
      /// The number of the invalid line, from 1.
      let lineNumber: Int
    }

    private func spoil(
      with bad: [UInt8], seed: UInt64, firstLine: Int = 0
    ) -> SpoiltList {
      var random = SeededGenerator(seed: seed)
      let count = Int.random(in: 3...40, using: &random)
      let place = Int.random(in: firstLine...count, using: &random)
      var lines = (0..<count).map { Array("http://127.0.0.1:9/valid-\($0).bin".utf8) }
      lines.insert(bad, at: place)
      // Options belong below a URL.
      if bad.first == UInt8(ascii: " ") { return insert(bad, below: place, of: lines) }
      return SpoiltList(bytes: Array(lines.joined(separator: [10])) + [10], lineNumber: place + 1)
    }

    private func insert(_ bad: [UInt8], below place: Int, of lines: [[UInt8]]) -> SpoiltList {
      var lines = lines
      lines[place] = Array("http://127.0.0.1:9/spoilt.bin".utf8)
      lines.insert(bad, at: place + 1)
      return SpoiltList(bytes: Array(lines.joined(separator: [10])) + [10], lineNumber: place + 2)
    }

    /// Expects `mount`, `list` and `get` to refuse the list, to name its invalid line, and to do
    /// nothing.
    private func expectRejection(
      _ list: SpoiltList, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let sandbox = try Sandbox()
      let path = try sandbox.write(list.bytes, to: "bad.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      let downloads = try sandbox.makeDirectory("downloads")
      let httpfs = try Products.httpfs
      for command in [
        [httpfs, "mount", "--cache-dir", sandbox.path("cache"), path, mountpoint],
        [httpfs, "list", path],
        ["env", "--chdir", downloads, httpfs, "get", "--quiet", "--retries", "0", "-i", path],
      ] {
        let result = try run(command, within: .seconds(20))
        #expect(result.ending == .exited(1), "\(command)", sourceLocation: sourceLocation)
        #expect(
          result.error.contains("bad.txt:\(list.lineNumber):"), "\(result.error.prefix(500))",
          sourceLocation: sourceLocation)
        // One line for the terminal, whatever bytes the list contains.
        #expect(
          result.error.split(separator: "\n").count == 1
            && result.error.dropLast().allSatisfy { !$0.isNewline && $0 >= " " },
          "\(result.error.prefix(500))", sourceLocation: sourceLocation)
      }
      #expect(MountTable.httpfs(at: mountpoint) == nil, sourceLocation: sourceLocation)
      let left = try FileManager.default.contentsOfDirectory(atPath: downloads)
      #expect(left.isEmpty, "\(left)", sourceLocation: sourceLocation)
    }

    @Test(
      "59 NUL, control bytes, bytes that are not UTF-8: the line is rejected by its number",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func forbiddenBytes(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 59)
      let control = UInt8(
        [1...8, 11...12, 14...31].randomElement(using: &random)?
          .randomElement(using: &random) ?? 1)
      let isolated = UInt8.random(in: 0x80...0xFF, using: &random)
      for bytes: [UInt8] in [
        [0], [control], [0x7F], [isolated], [0xC0, 0xAF], [0xED, 0xA0, 0x80],
      ] {
        for prefix in ["http://127.0.0.1:9/a", " out=a"] {
          try expectRejection(
            spoil(with: Array(prefix.utf8) + bytes + Array("b".utf8), seed: seed))
        }
      }
    }

    @Test(
      "60 CR or LF in a header: rejected, and nothing is sent",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func headerInjection(seed: UInt64) throws {
      for value in ["a\rX-Injected: 1", "a\u{0}b", "\r"] {
        try expectRejection(spoil(with: Array(" header=X-Key: \(value)b".utf8), seed: seed))
      }
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("h.bin", length: 1000, seed: seed)
      for header in ["X-Key: a\r\nX-Injected: 1", "X-Key: a\nX-Injected: 1", "X-Key: a\rb"] {
        let result = try work.get("-H", header, url)
        #expect(result.ending == .exited(1))
        #expect(result.error.hasPrefix("httpfs: "), "\(result.error)")
        let upload = try work.put("-H", header, try work.sandbox.write("x", to: "x"), url)
        #expect(upload.ending == .exited(1))
      }
      // In a URL they would become part of the request's first line.
      for character in ["\r\n", "\n", " "] {
        let result = try work.get("\(url)\(character)X-Injected:1")
        #expect(result.ending == .exited(1))
      }
      #expect(try origin.requests().isEmpty)
      #expect(work.names.isEmpty, "\(work.names)")
    }

    @Test(
      "61 .., absolute paths and .status as names: rejected",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func forbiddenNames(seed: UInt64) throws {
      for option in [
        "out=../a", "out=a/../../b", "out=..", "out=.", "out=/etc/passwd", "out=a/./b", "dir=..",
        "dir=a/../..",
      ] {
        try expectRejection(spoil(with: Array(" \(option)".utf8), seed: seed))
      }
      // The path of a URL must not lead out either, plain or encoded.
      for path in ["a/..", "a/.", "%2e%2e", ".%2E"] {
        try expectRejection(spoil(with: Array("http://127.0.0.1:9/\(path)".utf8), seed: seed))
      }
      let sandbox = try Sandbox()
      for name in [".status", ".status.json"] {
        let list = try sandbox.write("http://127.0.0.1:9/a\n out=\(name)\n", to: "bad.txt")
        let result = try run(
          [try Products.httpfs, "mount", "--cache-dir", sandbox.path("cache"), list]
            + [try sandbox.makeDirectory("mnt")], within: .seconds(20))
        #expect(result.ending == .exited(1))
        #expect(result.error.contains("bad.txt:2:"), "\(result.error)")
      }
      // An encoded slash is a character of the name.
      let list = try sandbox.write("http://127.0.0.1:9/a%2F..%2F..%2Fetc\n", to: "list.txt")
      let names = try output(of: [try Products.httpfs, "list", list])
      #expect(names.hasPrefix("a_.._.._etc\t"), "\(names)")
    }

    @Test(
      "62 a name over 255 bytes: rejected; 255 are a name",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func longNames(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 62)
      // The limit counts bytes, not characters.
      let unit = ["n", "ü", "漢"][Int.random(in: 0..<3, using: &random)]
      let fits = 255 / unit.utf8.count
      let long = String(repeating: unit, count: fits)
      let padded = long + String(repeating: "n", count: 255 - long.utf8.count)
      try expectRejection(spoil(with: Array(" out=\(padded)n".utf8), seed: seed))
      try expectRejection(spoil(with: Array(" dir=\(padded)n/d".utf8), seed: seed))
      let encoded =
        padded.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? padded
      try expectRejection(spoil(with: Array("http://127.0.0.1:9/\(encoded)n".utf8), seed: seed))

      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [
        origin.url("x", length: 1000, seed: seed) + "\n out=\(padded)"
      ])
      #expect(try mount.sha256(padded) == Digest.ofContent(seed: seed, byteCount: 1000))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "63 duplicates, and a file that is also a directory: rejected",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func clashes(seed: UInt64) throws {
      try expectRejection(
        spoil(with: Array("http://127.0.0.2:9/valid-0.bin".utf8), seed: seed, firstLine: 1))
      try expectRejection(
        spoil(
          with: Array("http://127.0.0.2:9/x\n out=valid-0.bin/x".utf8), seed: seed, firstLine: 1))
    }

    @Test(
      "63 names that differ in case only are both kept",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func caseVariants(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let names = ["Case.bin", "case.bin", "CASE.BIN"]
      let mount = try sandbox.mount(
        urls: names.enumerated().map {
          origin.url($1, length: 10_000, seed: seed &+ UInt64($0))
        })
      for (index, name) in names.enumerated() {
        #expect(
          try mount.sha256(name)
            == Digest.ofContent(seed: seed &+ UInt64(index), byteCount: 10_000))
      }
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "64 a line of 10 MB: rejected by its number, in bounded memory",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func hugeLine(seed: UInt64) throws {
      let line =
        Array("http://127.0.0.1:9/".utf8)
        + [UInt8](repeating: UInt8(ascii: "x"), count: 10_000_000)
      try expectRejection(spoil(with: line, seed: seed))
    }

    @Test(
      "64 a list of 1,000,000 lines: mounted within 64 MiB and 400 bytes an entry",
      .timeLimit(.minutes(5)), arguments: FaultSeeds.all)
    func manyLines(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let count = 1_000_000
      let list = sandbox.path("urls.txt")
      let base = "http://127.0.0.1:\(origin.port)/data"
      let pace = try elapsed {
        try shell(
          "awk 'BEGIN { for (i = 0; i < \(count); i++)"
            + " printf \"\(base)/d%d/f%d.bin?length=5000&seed=%d\\n dir=d%d\\n\","
            + " i / 1000, i, i + \(seed), i / 1000 }' > \(quoted(list))", within: .seconds(300))
      }
      let start = ContinuousClock.now
      let mount = sandbox.adopt(
        try Mount(
          source: list, mountpoint: try sandbox.makeDirectory("mnt"),
          cacheDirectory: sandbox.path("cache"),
          // On an idle machine, it takes some ten times as long as to write the list.
          within: max(.seconds(60), min(pace * 100, .seconds(180)))))
      let ready = ContinuousClock.now - start
      #expect(mount.announcedFileCount == count)
      let number = UInt64(seed &* 7919 % UInt64(count))
      #expect(
        try mount.sha256("d\(number / 1000)/f\(number).bin")
          == Digest.ofContent(seed: number + seed, byteCount: 5000))
      let resident = try ProcessTable.residentByteCount(of: mount.process.processID)
      print("64: \(count) entries: ready after \(ready), \(resident >> 20) MiB resident")
      #expect(resident <= (64 << 20) + Int64(count) * 400, "\(resident >> 20) MiB")
      #expect(try mount.unmount() == .exited(0))
    }
  }
}
