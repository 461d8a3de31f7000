import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// The file at the destination path of a download.
  @Suite struct FileDestinations {
    private let client = TransferClient()
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Starts a download that stalls after its first mebibyte.
    private func startHeld(
      _ server: ScriptedServer, to name: String, byteCount: Int64 = 512 << 10,
      existing: ExistingFile = .replaceResult
    ) async throws -> Transfer {
      let transfer = client.transfer(
        try .quick(server.url("/"), to: .file(directory.file(name), existing: existing)))
      transfer.start()
      try await eventually { transfer.progress.receivedByteCount >= byteCount }
      return transfer
    }

    /// The answers for `file`, the first of which waits for `gate` after 1 MiB.
    private func gated(_ file: ServedFile, _ gate: Gate) throws -> ScriptedServer {
      let tries = Counter()
      return try ScriptedServer { request in
        let steps = file.answer(request)
        guard tries.next() == 1, case .send(let body) = steps[1] else { return steps }
        return [
          steps[0], .send(Array(body[..<(1 << 20)])), .wait(for: gate),
          .send(Array(body[(1 << 20)...])),
        ]
      }
    }

    @Test("An empty file that cannot be begun is no success")
    func emptyAndRefused() async throws {
      let server = try ScriptedServer(answer: ServedFile([]).answer)
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      // A directory has the name of the partial file.
      #expect(mkdir(directory.file("a.httpfs-part"), 0o700) == 0)
      var request = try Request.quick(server.url("/a"), to: .file(directory.file("a")))
      request.resumes = false
      let run = await client.run(request)
      #expect(run.error?.code == .destination, "\(String(describing: run.error))")
      #expect(directory.names == ["a.httpfs-part"])
    }

    @Test("An existing file stays as it is until the new one is whole, then is replaced at once")
    func replacement() async throws {
      let gate = Gate()
      let file = ServedFile(byteCount: 2 << 20)
      let server = try gated(file, gate)
      defer { server.stop() }
      defer { gate.open() }
      try directory.write(Array("old".utf8), to: "a")
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o640], ofItemAtPath: directory.file("a"))
      let old = try #require(FileHandle(forReadingAtPath: directory.file("a")))
      let transfer = try await startHeld(server, to: "a", existing: .replace)
      #expect(directory.contents("a") == Array("old".utf8))
      gate.open()
      let run = await TransferRun(transfer)
      #expect(run.result != nil)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      let attributes = try FileManager.default.attributesOfItem(atPath: directory.file("a"))
      #expect(attributes[.posixPermissions] as? Int == 0o640)
      // A program that had the file open still reads the old content.
      #expect(try old.readToEnd() == Data("old".utf8))
    }

    @Test("An existing file survives a download that fails")
    func survival() async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK", "Content-Length: 100"), .text("short"), .close]
      }
      defer { server.stop() }
      try directory.write(Array("old".utf8), to: "a")
      let run = await client.run(
        try .quick(server.url("/"), to: .file(directory.file("a"), existing: .replace)))
      #expect(run.error?.code == .connectionLost)
      #expect(directory.contents("a") == Array("old".utf8))
    }

    @Test("Directories that lead to the destination are created")
    func directories() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("deep") }
      defer { server.stop() }
      let run = await client.run(
        try .quick(server.url("/"), to: .file(directory.file("x/y/z/a"))))
      #expect(run.result?.byteCount == 4)
      #expect(directory.contents("x/y/z/a") == Array("deep".utf8))
    }

    @Test(
      "An empty body makes an empty file", arguments: ["Content-Length: 0", "Connection: close"])
    func emptyBody(field: String) async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK", field)] + (field.hasPrefix("Connection") ? [.close] : [])
      }
      defer { server.stop() }
      try directory.write([1], to: "a")
      let run = await client.run(
        try .quick(server.url("/"), to: .file(directory.file("a"), existing: .replace)))
      #expect(run.result?.byteCount == 0)
      #expect(directory.contents("a") == [])
      #expect(directory.names == ["a"])
    }

    // MARK: Two at once

    @Test(
      "Of two transfers to one destination the second fails, and the first is not disturbed",
      arguments: [true, false])
    func inUse(secondResumes: Bool) async throws {
      let gate = Gate()
      let file = ServedFile(byteCount: 2 << 20)
      let server = try gated(file, gate)
      defer { server.stop() }
      defer { gate.open() }
      let first = try await startHeld(server, to: "a")
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.resumes = secondResumes
      let second = await TransferClient().run(request)
      #expect(second.error?.code == .destinationInUse)
      #expect(directory.names == ["a.httpfs-part", "a.httpfs-part.record"])
      gate.open()
      #expect(await TransferRun(first).result?.byteCount == 2 << 20)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      #expect(directory.names == ["a"])
    }

    @Test(
      "The first of two transfers can be resumed after the second was refused",
      arguments: [true, false])
    func resumableAfterInUse(secondResumes: Bool) async throws {
      let gate = Gate()
      let file = ServedFile(byteCount: 2 << 20)
      let server = try gated(file, gate)
      defer { server.stop() }
      defer { gate.open() }
      let first = try await startHeld(server, to: "a")
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.resumes = secondResumes
      #expect(await client.run(request).error?.code == .destinationInUse)
      first.cancel()
      #expect(await TransferRun(first).error?.code == .cancelled)
      gate.open()
      let third = await client.run(
        try .quick(server.url("/"), to: .file(directory.file("a"))))
      #expect(third.log.resumed > 0)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    @Test("To clear a transfer that never ran does not take another one's bytes away")
    func clearWhileInUse() async throws {
      let gate = Gate()
      let file = ServedFile(byteCount: 2 << 20)
      let server = try gated(file, gate)
      defer { server.stop() }
      defer { gate.open() }
      let first = try await startHeld(server, to: "a")
      let second = client.transfer(try .quick(server.url("/"), to: .file(directory.file("a"))))
      second.cancelAndClear()
      await #expect(throws: TransferError.self) { _ = try await second.result() }
      #expect(directory.names == ["a.httpfs-part", "a.httpfs-part.record"])
      gate.open()
      #expect(await TransferRun(first).result?.byteCount == 2 << 20)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    // MARK: Names

    @Test("What a symbolic link leads to is replaced, and the link stays")
    func symbolicLink() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("new") }
      defer { server.stop() }
      let manager = FileManager.default
      try manager.createDirectory(
        atPath: directory.file("real"), withIntermediateDirectories: false)
      try directory.write(Array("old".utf8), to: "real/target")
      try manager.createSymbolicLink(
        atPath: directory.file("link"), withDestinationPath: "real/target")
      let run = await client.run(
        try .quick(server.url("/"), to: .file(directory.file("link"), existing: .replace)))
      #expect(run.result?.byteCount == 3)
      #expect(
        try manager.destinationOfSymbolicLink(atPath: directory.file("link")) == "real/target")
      #expect(directory.contents("real/target") == Array("new".utf8))
      #expect(directory.names == ["link", "real"])
    }

    @Test("Names as long as the file system takes work, and share no partial file")
    func longNames() async throws {
      let file = ServedFile(byteCount: 2 << 20)
      let gate = Gate()
      let server = try gated(file, gate)
      defer { server.stop() }
      defer { gate.open() }
      let names = ["1", "2"].map { String(repeating: "n", count: 249) + $0 }
      let first = try await startHeld(server, to: names[0])
      let second = await client.run(
        try .quick(server.url("/"), to: .file(directory.file(names[1]))))
      #expect(second.result?.byteCount == 2 << 20)
      gate.open()
      #expect(await TransferRun(first).result?.byteCount == 2 << 20)
      #expect(directory.names == names)
      for name in names { #expect(directory.contents(name)?.fingerprint == file.bytes.fingerprint) }
    }

    @Test("A long name of characters beyond ASCII is cut between them")
    func longUnicodeName() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("new") }
      defer { server.stop() }
      let name = String(repeating: "ü", count: 127)
      let run = await client.run(try .quick(server.url("/"), to: .file(directory.file(name))))
      #expect(run.result?.byteCount == 3)
      #expect(directory.names.count == 1)
      #expect(directory.contents(name) == Array("new".utf8))
    }

    /// An impossible destination, and the resulting `errno`.
    struct BadPath: Sendable {
      let path: String
      let errno: CInt
    }

    @Test(
      "A destination that cannot be written fails before anything is asked for",
      arguments: [
        BadPath(path: "dir", errno: EISDIR), BadPath(path: "new/", errno: EISDIR),
        BadPath(path: "file/below", errno: ENOTDIR), BadPath(path: "pipe", errno: EINVAL),
        BadPath(path: String(repeating: "n", count: 256), errno: ENAMETOOLONG),
        BadPath(path: "dir/..", errno: EISDIR),
        // The partial file's names of `a`, which would get the bytes of this download.
        BadPath(path: "a.httpfs-part", errno: EINVAL),
        BadPath(path: "a.httpfs-part.record", errno: EINVAL),
      ])
    func badPath(_ bad: BadPath) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("new") }
      defer { server.stop() }
      try FileManager.default.createDirectory(
        atPath: directory.file("dir"), withIntermediateDirectories: false)
      try directory.write([1], to: "file")
      #expect(mkfifo(directory.file("pipe"), 0o600) == 0)
      let run = await client.run(
        try .quick(server.url("/"), to: .file(directory.file(bad.path))))
      #expect(run.error?.code == .destination)
      #expect(run.error?.errno == bad.errno)
      #expect(server.requests.isEmpty)
      #expect(directory.names == ["dir", "file", "pipe"])
    }

    @Test(
      "What a killed process has left beside the destination is removed, and nothing else",
      arguments: [100, 2 << 20])
    func leftovers(byteCount: Int) async throws {
      let file = ServedFile(byteCount: byteCount)
      let server = try ScriptedServer { file.answer($0) }
      defer { server.stop() }
      let leftovers = ["new", "mode", "origin"].map { "a.httpfs-part.record-\($0)" }
      // Other files, by their names.
      let others = [
        "a.httpfs-part.record-", "a.httpfs-part.record-newer", "b.httpfs-part.record-new",
      ]
      for name in leftovers + others { try directory.write([1], to: name) }
      for existing in [ExistingFile.replaceResult, .replace] {
        let run = await client.run(
          try .quick(server.url("/"), to: .file(directory.file("a"), existing: existing)))
        #expect(run.result?.byteCount == Int64(byteCount))
        #expect(directory.names == (["a"] + others).sorted())
        for name in leftovers { try directory.write([1], to: name) }
      }
      // This also holds if the file does not change.
      let run = await client.run(try .quick(server.url("/"), to: .file(directory.file("a"))))
      #expect(run.result != nil)
      #expect(directory.names == (["a"] + others).sorted())
    }

    @Test(
      "A partial file that was replaced or removed never gets the name", arguments: [true, false])
    func replacedPart(isRemoved: Bool) async throws {
      let gate = Gate()
      let server = try gated(ServedFile(byteCount: 2 << 20), gate)
      defer { server.stop() }
      defer { gate.open() }
      let transfer = try await startHeld(server, to: "a")
      try FileManager.default.removeItem(atPath: directory.file("a.httpfs-part"))
      if !isRemoved { try directory.write([1, 2, 3], to: "a.httpfs-part") }
      gate.open()
      let run = await TransferRun(transfer)
      #expect(run.error?.code == .destination)
      #expect(run.error?.reason.contains("was removed or replaced") == true)
      #expect(directory.contents("a") == nil)
      #expect(directory.contents("a.httpfs-part") == (isRemoved ? nil : [1, 2, 3]))
    }

    @Test("A file that needs more than the disk has free fails before byte one")
    func tooLargeForTheDisk() async throws {
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Content-Length: \(1 << 59)"), .text("some"), .hold,
        ]
      }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/"), to: .file(directory.file("a"))))
      #expect(run.error?.code == .destination)
      #expect(run.error?.errno == ENOSPC)
      #expect(directory.contents("a") == nil)
    }
  }
}
