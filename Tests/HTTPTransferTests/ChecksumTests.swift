import HTTPTransfer
import HTTPTransferCore
import Testing

extension TransferTests {
  /// Bodies that must match a given checksum.
  @Suite struct Checksums {
    private let client = TransferClient()

    /// Checksums of `abc`.
    private static let right = [
      "sha-256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
      "sha-1=a9993e364706816aba3e25717850c26c9cd0d89d", "md5=900150983cd24fb0d6963f7d28e17f72",
    ]

    private static let wrong =
      "sha-256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ae"

    @Test("A file with the right checksum gets its name", arguments: right)
    func rightFile(checksum: String) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("abc") }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.checksum = try Checksum(checksum)
      #expect(await client.run(request).result?.byteCount == 3)
      #expect(directory.contents("a") == Array("abc".utf8))
    }

    @Test("A file with a wrong checksum never gets its name, and nothing is left to go on with")
    func wrongFile() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("abc") }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      try directory.write([1], to: "a")
      var request = try Request.quick(
        server.url("/"), to: .file(directory.file("a"), existing: .replace))
      request.checksum = try Checksum(Self.wrong)
      let run = await client.run(request)
      #expect(run.error?.code == .checksumMismatch)
      #expect(run.error?.reason.contains("ba7816bf8f01") == true)
      #expect(directory.contents("a") == [1])
      #expect(directory.names == ["a"])
    }

    @Test("A checksum of a file that came over many connections, out of order, is that of the file")
    func parallel() async throws {
      var file = ServedFile(byteCount: 8 << 20)
      file.isPaced = true
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      // The answer to a wrong checksum contains the right one.
      var request = try Request.quick(server.url("/"))
      request.connections = .exactly(4)
      request.checksum = try Checksum(Self.wrong)
      let reason = try #require(await client.run(request).error?.reason)
      let found = try #require(reason.split(separator: " ").last { $0.hasPrefix("sha-256=") })
      let directory = try TemporaryDirectory()
      request.destination = .file(directory.file("a"))
      request.checksum = try Checksum(found.prefix(8 + 64))
      #expect(await client.run(request).result?.byteCount == 8 << 20)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    @Test("Memory with a wrong checksum is not handed over", arguments: right + [wrong])
    func memory(checksum: String) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("abc") }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.checksum = try Checksum(checksum)
      let run = await client.run(request)
      if checksum == Self.wrong {
        #expect(run.error?.code == .checksumMismatch)
      } else {
        #expect(run.result?.body == Array("abc".utf8))
      }
    }

    @Test("A body that goes nowhere is compared all the same", arguments: right + [wrong])
    func discarded(checksum: String) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("abc") }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"), to: .discard)
      request.checksum = try Checksum(checksum)
      let run = await client.run(request)
      #expect(run.error?.code == (checksum == Self.wrong ? .checksumMismatch : nil))
      #expect((run.result?.byteCount == 3) == (checksum != Self.wrong))
    }

    @Test("A body that goes nowhere is hashed in order, and anew where everything begins anew")
    func discardedAnew() async throws {
      // The first answer is cut; the next version differs.
      let first = ServedFile(byteCount: 300_000, seed: 1)
      var second = ServedFile(Array("abc".utf8))
      second.entityTag = "\"v2\""
      let later = second
      let server = try ScriptedServer { request in
        guard request.connection == 1 else { return later.answer(request) }
        return [
          .head("HTTP/1.1 200 OK", "ETag: \"v1\"", "Content-Length: 300000"),
          .send(Array(first.bytes.prefix(100_000))), .close,
        ]
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"), to: .discard)
      request.checksum = try Checksum(Self.right[0])
      let run = await client.run(request)
      #expect(run.result?.byteCount == 3, "\(run.error?.reason ?? "")")
      #expect(server.requests.count > 1)
    }

    @Test("A stream with a wrong checksum ends with the failure", arguments: right + [wrong])
    func stream(checksum: String) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("abc") }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"), to: .stream())
      request.checksum = try Checksum(checksum)
      let transfer = client.transfer(request)
      var code: TransferError.Code?
      var bytes: [UInt8] = []
      do throws(TransferError) {
        for try await chunk in transfer.body { bytes += chunk }
      } catch {
        code = error.code
      }
      #expect(bytes == Array("abc".utf8))
      #expect(code == (checksum == Self.wrong ? .checksumMismatch : nil))
      let run = await TransferRun(transfer)
      #expect(run.error?.code == code)
    }
  }
}
