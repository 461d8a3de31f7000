import Foundation
import Glibc
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import LinuxSystem
import Testing

extension TransferTests {
  /// The effect of a download on a file that already has its name.
  @Suite struct ExistingFiles {
    private let client = TransferClient()
    private let directory: TemporaryDirectory
    private let precious = Array("precious".utf8)

    init() throws { directory = try TemporaryDirectory() }

    /// A server of `file` that evaluates conditions unless `heedsConditions` is false.
    private func server(_ file: ServedFile, heedsConditions: Bool = true) throws -> ScriptedServer {
      try ScriptedServer { request in
        let isSame = file.entityTag.map { request["if-none-match"] == [$0] } ?? false
        guard heedsConditions, isSame else { return file.answer(request) }
        return [.head("HTTP/1.1 304 Not Modified", "ETag: \(file.entityTag ?? "\"none\"")")]
      }
    }

    /// Downloads to `name` from a server of `file`, as the path `/x`.
    private func download(
      _ server: ScriptedServer, to name: String = "a", existing: ExistingFile = .replaceResult,
      path: String = "/x", change: (inout Request) throws -> Void = { _ in }
    ) async throws -> TransferRun {
      var request = try Request.quick(
        server.url(path), to: .file(directory.file(name), existing: existing))
      try change(&request)
      return await client.run(request)
    }

    /// Two servers, one after the other, on the same port, so the URL is the same.
    private func servers(
      _ first: ServedFile, then second: ServedFile
    ) throws -> (ScriptedServer, Gate) {
      let gate = Gate()
      let server = try ScriptedServer { request in
        (gate.isOpen ? second : first).answer(request)
      }
      return (server, gate)
    }

    // MARK: What is no answer about the file

    @Test("A login page as 200, without validators, does not replace a result")
    func loginPage() async throws {
      let file = ServedFile(byteCount: 1000)
      let gate = Gate()
      let server = try ScriptedServer { request in
        guard gate.isOpen else { return file.answer(request) }
        return [
          .head(
            "HTTP/1.1 200 OK", "Content-Type: text/html", "Cache-Control: no-store",
            "Content-Length: 6"), .text("log in"),
        ]
      }
      defer { server.stop() }
      #expect(try await download(server, path: "/x.zip").error == nil)
      let whole = directory.contents("a")
      gate.open()
      let run = try await download(server, path: "/x.zip")
      #expect(run.error?.code == .invalidResponse)
      #expect(run.error?.reason.contains("looks like another document") == true)
      #expect(directory.contents("a") == whole)
      #expect(try await download(server, existing: .replace, path: "/x.zip").error == nil)
      #expect(directory.contents("a") == Array("log in".utf8))
    }

    @Test("A 304 for another entity tag is asked again without a condition")
    func confirmationOfAnother() async throws {
      let (first, second) = (ServedFile(byteCount: 1000), ServedFile(byteCount: 2000))
      let gate = Gate()
      let server = try ScriptedServer { request in
        guard gate.isOpen else { return first.answer(request) }
        guard !request["if-none-match"].isEmpty else { return second.answer(request) }
        return [.head("HTTP/1.1 304 Not Modified", "ETag: \"zzz\"")]
      }
      defer { server.stop() }
      #expect(try await download(server).error == nil)
      gate.open()
      #expect(try await download(server).error == nil)
      #expect(directory.contents("a")?.count == 2000)
    }

    // MARK: What is no result

    @Test("A file of unknown origin is not replaced, and nothing is asked for")
    func unknown() async throws {
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      try directory.write(precious, to: "a")
      let run = try await download(server)
      #expect(run.error?.code == .destinationExists)
      #expect(run.error?.reason.contains("'\(directory.file("a"))' exists, and nothing") == true)
      #expect(directory.contents("a") == precious)
      #expect(directory.names == ["a"])
      #expect(server.requests.isEmpty)
    }

    @Test("It is replaced when the caller says so", arguments: [0o640, 0o755])
    func replaced(permissions: Int) async throws {
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      try directory.write(precious, to: "a")
      #expect(chmod(directory.file("a"), mode_t(permissions)) == 0)
      let run = try await download(server, existing: .replace)
      #expect(run.result?.isUnchanged == false)
      #expect(directory.contents("a")?.count == 1000)
      let attributes = try FileManager.default.attributesOfItem(atPath: directory.file("a"))
      #expect(attributes[.posixPermissions] as? Int == permissions)
    }

    @Test("The bits that let a program run as its owner do not pass to what comes from elsewhere")
    func setUserID() async throws {
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      try directory.write(precious, to: "a")
      #expect(chmod(directory.file("a"), 0o6755) == 0)
      #expect(try await download(server, existing: .replace).result != nil)
      var status = stat()
      #expect(stat(directory.file("a"), &status) == 0)
      #expect(status.st_mode & 0o7777 == 0o755)
    }

    private func status(_ name: String) -> stat {
      var status = stat()
      #expect(stat(directory.file(name), &status) == 0)
      return status
    }

    @Test(
      "Of another's file, or one of two names, no permission passes that a new file would not have",
      arguments: [0o600, 0o666, 0o777], ["owner", "link"])
    func foreignPermissions(permissions: Int, flaw: String) async throws {
      if flaw == "owner", geteuid() != 0 { return }
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      #expect(try await download(server, to: "new").result != nil)
      try directory.write(precious, to: "a")
      let path = directory.file("a")
      #expect(chmod(path, mode_t(permissions)) == 0)
      if flaw == "owner" {
        #expect(chown(path, 65534, 65534) == 0)
      } else {
        #expect(link(path, directory.file("b")) == 0)
      }
      #expect(try await download(server, existing: .replace).result != nil)
      let expected = status("new").st_mode & mode_t(permissions) | 0o600
      #expect(status("a").st_mode & 0o7777 == expected & 0o777)
      #expect(status("a").st_uid == geteuid())
    }

    @Test("The access list and the group of a file pass to what replaces it")
    func accessList() async throws {
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      try directory.write(precious, to: "a")
      let path = directory.file("a")
      // The user rw, user 1005 rw, the group none, a mask of rw, others none.
      let entries: [(UInt8, UInt8, UInt32)] = [
        (1, 6, .max), (2, 6, 1005), (4, 0, .max), (16, 6, .max), (32, 0, .max),
      ]
      let list: [UInt8] =
        [2, 0, 0, 0]
        + entries.flatMap { tag, rights, number in
          [tag, 0, rights, 0] + (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
        }
      let name = "system.posix_acl_access"
      // A file system without such lists cannot lose them.
      let old = try #require(FileHandle(forUpdatingAtPath: path))
      defer { try? old.close() }
      guard (try? SystemCalls.setAttribute(name, of: old.fileDescriptor, to: list)) != nil else {
        return
      }
      if geteuid() == 0 { #expect(chown(path, 0, 100) == 0) }
      let before = status("a")
      #expect(try await download(server, existing: .replace).result != nil)
      let new = try #require(FileHandle(forReadingAtPath: path))
      defer { try? new.close() }
      #expect(SystemCalls.attribute(name, of: new.fileDescriptor) == list)
      #expect(status("a").st_mode == before.st_mode)
      #expect(status("a").st_gid == before.st_gid)
    }

    @Test("A result of another URL, or another range of it, is not replaced")
    func otherURL() async throws {
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      #expect(try await download(server).result != nil)
      let asked = server.requests.count
      #expect(try await download(server, path: "/y").error?.code == .destinationExists)
      let part = try await download(server) { $0.range = 0..<10 }
      #expect(part.error?.code == .destinationExists)
      #expect(server.requests.count == asked)
      #expect(directory.contents("a")?.count == 1000)
    }

    @Test(
      "An edited, copied or touched result is not replaced", arguments: ["edit", "copy", "touch"])
    func edited(change: String) async throws {
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      #expect(try await download(server).result != nil)
      let asked = server.requests.count
      let path = directory.file("a")
      switch change {
      case "edit":
        // The same length as before, in place.
        let file = try #require(FileHandle(forWritingAtPath: path))
        try file.write(contentsOf: precious)
        try file.close()
      case "copy":
        try FileManager.default.copyItem(atPath: path, toPath: path + "2")
        #expect(rename(path + "2", path) == 0)
      default: #expect(utimes(path, nil) == 0)
      }
      let before = directory.contents("a")
      #expect(try await download(server).error?.code == .destinationExists)
      #expect(directory.contents("a") == before)
      #expect(server.requests.count == asked)
    }

    @Test("A file that is to be kept is, even a result of the same URL")
    func kept() async throws {
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      #expect(try await download(server, existing: .keep).result != nil)
      #expect(try await download(server, existing: .keep).error?.code == .destinationExists)
    }

    // MARK: Results

    @Test(
      "An unchanged result is asked about once, and left", arguments: [true, false], [true, false])
    func unchanged(hasTag: Bool, heedsConditions: Bool) async throws {
      var file = ServedFile(byteCount: 1 << 20)
      if !hasTag {
        file.entityTag = nil
        file.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
        file.date = "Sun, 06 Nov 1994 08:59:37 GMT"
      }
      let server = try server(file, heedsConditions: heedsConditions)
      defer { server.stop() }
      #expect(try await download(server).result?.isUnchanged == false)
      var before = stat()
      #expect(stat(directory.file("a"), &before) == 0)
      let asked = server.requests.count
      let run = try await download(server)
      #expect(run.result?.isUnchanged == true)
      #expect(run.result?.byteCount == 1 << 20)
      #expect(server.requests.count == asked + 1)
      var after = stat()
      #expect(stat(directory.file("a"), &after) == 0)
      #expect(after.st_ino == before.st_ino)
      #expect(directory.names == ["a"])
    }

    @Test("A changed one is fetched and replaced; one without validators, too")
    func changed() async throws {
      let first = ServedFile(byteCount: 1 << 20)
      var second = ServedFile(byteCount: 1 << 20, seed: 2)
      second.entityTag = nil
      let (server, gate) = try servers(first, then: second)
      defer { server.stop() }
      #expect(try await download(server).result != nil)
      gate.open()
      let run = try await download(server)
      #expect(run.result?.isUnchanged == false)
      #expect(directory.contents("a")?.fingerprint == second.bytes.fingerprint)
      #expect(try await download(server).result?.isUnchanged == false)
      #expect(directory.names == ["a"])
    }

    @Test("A file put back to an older one is fetched, where only dates tell them apart")
    func putBack() async throws {
      var newer = ServedFile(byteCount: 1 << 20)
      newer.entityTag = nil
      newer.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
      newer.date = "Sun, 06 Nov 1994 08:59:37 GMT"
      var older = ServedFile(byteCount: 1 << 20, seed: 2)
      older.entityTag = nil
      older.lastModified = "Sat, 05 Nov 1994 08:49:37 GMT"
      older.date = newer.date
      let gate = Gate()
      let (first, second) = (newer, older)
      let server = try ScriptedServer { request in
        guard gate.isOpen else { return first.answer(request) }
        // A file that is older than the date of the condition has not been modified since.
        guard request["if-modified-since"].isEmpty else {
          return [.head("HTTP/1.1 304 Not Modified", "Date: \(second.date ?? "")")]
        }
        return second.answer(request)
      }
      defer { server.stop() }
      #expect(try await download(server).result != nil)
      gate.open()
      #expect(try await download(server).result?.isUnchanged == false)
      #expect(directory.contents("a")?.fingerprint == second.bytes.fingerprint)
    }

    @Test("A signature and a password in the URL make no other one")
    func secrets() async throws {
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      let query = "/x?X-Amz-Signature=canary&X-Amz-Credential=c&X-Amz-Date=20261122T000000Z"
      let signed =
        query + "&X-Amz-Expires=60&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-SignedHeaders=h"
      #expect(try await download(server, path: signed).result != nil)
      let again = signed.replacing("canary", with: "canary2")
      #expect(try await download(server, path: again).result?.isUnchanged == true)
    }

    @Test(
      "A result that was not compared with the checksum of now is fetched, and replaced if right")
    func checksum() async throws {
      let file = ServedFile(byteCount: 1000)
      let server = try server(file)
      defer { server.stop() }
      #expect(try await download(server).result != nil)
      let wrong = try Checksum("md5=" + String(repeating: "0", count: 32))
      let run = try await download(server) { $0.checksum = wrong }
      #expect(run.error?.code == .checksumMismatch)
      #expect(directory.contents("a") == file.bytes)
      // The file is still a result, which may be left in place.
      #expect(try await download(server).result?.isUnchanged == true)
    }

    @Test(
      "Others who may write a result cannot make a checksum vouch for their bytes",
      arguments: [true, false])
    func forgedResult(isWhole: Bool) async throws {
      let file = ServedFile(byteCount: 1000)
      let server = try server(file)
      defer { server.stop() }
      func compare(_ request: inout Request) throws {
        if isWhole {
          request.checksum = TestHashes.checksum(file.bytes)
        } else {
          request.pieces = TestHashes.pieces(file.bytes, of: 300)
        }
      }
      #expect(try await download(server, change: compare).result != nil)
      let path = directory.file("a")
      #expect(chmod(path, 0o664) == 0)
      #expect(try await download(server, change: compare).result?.isUnchanged == true)
      let handle = try #require(FileHandle(forUpdatingAtPath: path))
      defer { try? handle.close() }
      try handle.write(contentsOf: precious)
      let name = "user.httpfs.stamp"
      // A file system without attributes keeps the stamp in a place that other users cannot write.
      guard let stamp = SystemCalls.attribute(name, of: handle.fileDescriptor) else { return }
      var words = String(decoding: stamp, as: UTF8.self).split(separator: " ").map(String.init)
      let modified = status("a").st_mtim
      words[1] = "\(modified.tv_sec).\(modified.tv_nsec)"
      let forged = Array(words.joined(separator: " ").utf8)
      try SystemCalls.setAttribute(name, of: handle.fileDescriptor, to: forged)
      let run = try await download(server, change: compare)
      #expect(run.result?.isUnchanged == false)
      #expect(directory.contents("a") == file.bytes)
    }

    @Test("A caller's own condition is the only one")
    func ownCondition() async throws {
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      #expect(try await download(server).result != nil)
      let run = try await download(server) { $0.fields[.ifNoneMatch] = "\"v1\"" }
      #expect(run.error?.status == 304)
      #expect(directory.contents("a")?.count == 1000)
    }

    // MARK: Meanwhile

    @Test("What comes to be there, or changes, while a download runs is not destroyed")
    func meanwhile() async throws {
      let first = ServedFile(byteCount: 2 << 20)
      let second = ServedFile(byteCount: 2 << 20, seed: 2)
      for isThere in [false, true] {
        let (gate, version) = (Gate(), Gate())
        let server = try ScriptedServer { request in
          var file = version.isOpen ? second : first
          if version.isOpen { file.entityTag = "\"v2\"" }
          let steps = file.answer(request)
          guard isThere == version.isOpen, case .send(let body) = steps[1],
            body.count > 1 << 20
          else { return steps }
          return [
            steps[0], .send(Array(body[..<(1 << 20)])), .wait(for: gate),
            .send(Array(body[(1 << 20)...])),
          ]
        }
        defer { server.stop() }
        defer { gate.open() }
        if isThere { #expect(try await download(server).result != nil) }
        if isThere { version.open() }
        let transfer = client.transfer(
          try .quick(server.url("/x"), to: .file(directory.file("a"))))
        transfer.start()
        try await eventually { transfer.progress.receivedByteCount >= 512 << 10 }
        try directory.write(precious, to: "a")
        gate.open()
        let run = await TransferRun(transfer)
        #expect(run.error?.code == .destinationExists, "\(isThere)")
        #expect(directory.contents("a") == precious)
        // Nothing is fetched again if the caller then permits the replacement.
        let asked = server.requests.count
        let last = try await download(server, existing: .replace)
        #expect(last.log.resumed == 2 << 20)
        #expect(server.requests.count <= asked + 1)
        #expect(directory.names == ["a"])
        try FileManager.default.removeItem(atPath: directory.file("a"))
      }
    }

    // MARK: Links

    @Test("No link is followed below the directory of a name that somebody else has chosen")
    func linksInside() async throws {
      let server = try server(ServedFile(byteCount: 1000))
      defer { server.stop() }
      let manager = FileManager.default
      for name in ["base", "outside"] {
        try manager.createDirectory(
          atPath: directory.file(name), withIntermediateDirectories: false)
      }
      try directory.write(precious, to: "outside/f")
      try manager.createSymbolicLink(
        atPath: directory.file("base/link"), withDestinationPath: "../outside")
      try manager.createSymbolicLink(
        atPath: directory.file("base/f"), withDestinationPath: "../outside/f")
      for (path, existing, code) in [
        ("link/f", ExistingFile.replace, TransferError.Code.destination),
        ("link/new", .replaceResult, .destination), ("f", .replaceResult, .destinationExists),
        ("../outside/f", .replace, .destination), ("/x", .replace, .destination),
        // To Swift, these slashes and the following scalars are one character each.
        ("link/\u{301}f", .replace, .destination), ("link/\u{200D}f", .replace, .destination),
        ("link/f\u{600}/\u{301}f", .replace, .destination),
        ("..\u{301}/\u{301}../../outside/f", .replace, .destination),
        ("a\u{600}.httpfs-part", .replace, .destination),
        ("a\u{600}.httpfs-part.record", .replace, .destination),
        ("a\u{600}.httpfs-origin", .replace, .destination),
      ] {
        let run = await client.run(
          try .quick(
            server.url("/x"),
            to: .file(path, inside: directory.file("base"), existing: existing)))
        #expect(run.error?.code == code, "\(path)")
      }
      #expect(directory.contents("outside/f") == precious)
      #expect(server.requests.isEmpty)
      // The link itself has the name.
      let run = await client.run(
        try .quick(
          server.url("/x"),
          to: .file("f", inside: directory.file("base"), existing: .replace)))
      #expect(run.result != nil)
      #expect(directory.contents("outside/f") == precious)
      #expect(directory.contents("base/f")?.count == 1000)
      let deep = await client.run(
        try .quick(server.url("/x"), to: .file("new/dir/f", inside: directory.file("base"))))
      #expect(deep.result != nil)
      #expect(directory.contents("base/new/dir/f")?.count == 1000)
      for base in [directory.file("base"), nil] {
        let path = "marks\(base == nil ? 2 : 1)/\u{301}dir/\u{301}f"
        let marked = await client.run(
          try .quick(
            server.url("/x"),
            to: .file(base == nil ? directory.file(path) : path, inside: base)))
        #expect(marked.result != nil)
        #expect(directory.contents(base == nil ? path : "base/\(path)")?.count == 1000)
      }
    }

    // MARK: Partial files of others

    @Test(
      "A partial file that others can write, or that has another name too, is begun again",
      arguments: [
        "part-mode", "record-mode", "part-link", "record-link", "owner", "fifo", "symlink",
      ])
    func foreignPart(flaw: String) async throws {
      if flaw == "owner", geteuid() != 0 { return }
      let whole = ServedFile(byteCount: 4 << 20)
      let gate = Gate()
      let server = try ScriptedServer { request in
        var file = whole
        if !gate.isOpen { file.heldAfter = 2 << 20 }
        return file.answer(request)
      }
      defer { server.stop() }
      let transfer = client.transfer(try .quick(server.url("/x"), to: .file(directory.file("a"))))
      transfer.start()
      try await eventually { transfer.progress.receivedByteCount >= 1 << 20 }
      transfer.cancel()
      _ = await TransferRun(transfer)
      gate.open()
      let part = directory.file("a.httpfs-part")
      var status = stat()
      #expect(stat(part, &status) == 0 && status.st_mode & 0o777 == 0o600)
      switch flaw {
      case "part-mode": #expect(chmod(part, 0o620) == 0)
      case "record-mode": #expect(chmod(part + ".record", 0o602) == 0)
      case "part-link": #expect(link(part, directory.file("other")) == 0)
      case "record-link": #expect(link(part + ".record", directory.file("other")) == 0)
      case "owner": #expect(chown(part, 65534, 65534) == 0)
      case "fifo":
        #expect(unlink(part) == 0)
        #expect(mkfifo(part, 0o600) == 0)
      default:
        try directory.write(precious, to: "other")
        #expect(unlink(part) == 0)
        #expect(symlink("other", part) == 0)
      }
      let other = directory.contents("other")
      let run = try await download(server)
      #expect(run.result?.resumedByteCount == 0)
      #expect(directory.contents("a")?.fingerprint == whole.bytes.fingerprint)
      #expect(directory.contents("other") == other)
      #expect(stat(directory.file("a"), &status) == 0)
      #expect(status.st_uid == geteuid() && status.st_nlink == 1)
    }
  }
}
