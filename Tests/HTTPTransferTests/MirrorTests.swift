import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Several servers of one file: failover, distribution, and the detection of a wrong server.
  @Suite struct Mirrors {
    private let client = TransferClient()

    /// A file that justifies several connections, and takes a while on each.
    private static func pacedFile(_ byteCount: Int = 8 << 20) -> ServedFile {
      var file = ServedFile(byteCount: byteCount)
      file.isPaced = true
      return file
    }

    private func request(
      _ urls: [String], to destination: Destination = .memory()
    ) throws -> Request {
      var request = try Request.quick(try #require(urls.first), to: destination)
      request.mirrors = try urls.dropFirst().map { try RemoteURL($0) }
      request.connections = .exactly(4)
      return request
    }

    // MARK: Failing over

    @Test("A mirror that refuses connections is left for the next one")
    func refused() async throws {
      let file = ServedFile(byteCount: 1 << 20)
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      let refusing = try RefusingPort()
      defer { refusing.close() }
      let dead = "http://127.0.0.1:\(refusing.number)/dead"
      let run = await client.run(try request([dead, server.url("/a")]))
      #expect(run.result?.body == file.bytes)
      #expect(run.log.restarts.isEmpty)
    }

    @Test("A mirror that answers 404 is not asked twice, and is named", arguments: [404, 403, 410])
    func refusing(status: Int) async throws {
      let file = ServedFile(byteCount: 1 << 20)
      let server = try ScriptedServer(answer: file.answer)
      let other = try ScriptedServer { _ in
        [.head("HTTP/1.1 \(status) No", "Content-Length: 0")]
      }
      defer {
        server.stop()
        other.stop()
      }
      let run = await client.run(try request([other.url("/gone"), server.url("/a")]))
      #expect(run.result?.body == file.bytes)
      #expect(run.log.excludedMirrors.map(\.path) == ["/gone"])
      #expect(run.log.excludedMirrors.first?.reason.contains("HTTP \(status)") == true)
      #expect(other.requests.count == 1)
    }

    @Test("Where every mirror fails, the error names them all")
    func allFail() async throws {
      let servers = try [404, 403].map { status in
        try ScriptedServer { _ in [.head("HTTP/1.1 \(status) No", "Content-Length: 0")] }
      }
      defer { for server in servers { server.stop() } }
      let run = await client.run(try request(servers.map { $0.url("/x") }))
      #expect(run.error?.status == 403)
      #expect(run.error?.reason.contains("HTTP 404") == true)
    }

    @Test("Mirrors that all break off again and again are given up, with several connections too")
    func allBreakOff() async throws {
      let file = Self.pacedFile()
      let counter = Counter()
      let servers = try (0..<2).map { _ in
        try ScriptedServer { request in
          let count = counter.next()
          // The pauses differ, so the failures do not always coincide.
          let pause = ScriptedServer.Step.pause(milliseconds: UInt32(count % 5))
          guard count <= 8 else { return [pause, .reset] }
          return Array(file.answer(request).prefix(7)) + [.reset]
        }
      }
      defer { for server in servers { server.stop() } }
      var request = try request(servers.map { $0.url("/a") })
      request.retries = 5
      let run = await client.run(request)
      #expect(run.error?.code == .connectionLost)
      #expect(run.error?.reason.contains("other mirrors") == true)
    }

    @Test("Servers that break off after some bytes each time are given up", arguments: [1, 2])
    func breakingOffAgainAndAgain(count: Int) async throws {
      var file = ServedFile(byteCount: 4 << 20)
      // Some hundred such answers would bring the whole file.
      file.heldAfter = 8 << 10
      let held = file
      let servers = try (0..<count).map { _ in
        try ScriptedServer { request in
          held.answer(request).dropLast() + [.pause(milliseconds: 5), .reset]
        }
      }
      defer { for server in servers { server.stop() } }
      var request = try request(servers.map { $0.url("/a") })
      request.connections = .exactly(1)
      request.retries = 2
      let run = await client.run(request)
      #expect(run.error?.code == .connectionLost)
      // A single server is asked for the whole first; the ranges that follow count anew.
      #expect(servers.reduce(0) { $0 + $1.requests.count } <= 4 * count)
    }

    @Test("What one mirror has brought is kept when another one goes on")
    func cut() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      let server = try ScriptedServer(answer: file.answer)
      let failing = Counter()
      let cutting = try ScriptedServer { request in
        guard failing.next() == 1 else { return [.reset] }
        return [file.answer(request)[0], .send(Array(file.bytes[..<(1 << 20)])), .reset]
      }
      defer {
        server.stop()
        cutting.stop()
      }
      var request = try request([cutting.url("/cut"), server.url("/a")])
      request.connections = .exactly(1)
      let run = await client.run(request)
      #expect(run.result?.body == file.bytes)
      #expect(run.log.restarts.isEmpty)
      let firsts = server.requests.compactMap { $0.range?.first }
      #expect(!firsts.isEmpty && firsts.allSatisfy { $0 > 0 }, "\(firsts)")
    }

    @Test("A mirror of another length or version is not used, and named")
    func different() async throws {
      let file = Self.pacedFile()
      let longer = ServedFile(byteCount: (8 << 20) + 1)
      var other = ServedFile(byteCount: 8 << 20, seed: 2)
      other.entityTag = "\"other\""
      let changed = other
      let servers = try [
        ScriptedServer(answer: file.answer), ScriptedServer(answer: longer.answer),
        ScriptedServer(answer: changed.answer),
      ]
      defer { for server in servers { server.stop() } }
      let run = await client.run(
        try request([
          servers[0].url("/a"), servers[1].url("/longer"), servers[2].url("/changed"),
        ]))
      #expect(run.result?.body == file.bytes)
      #expect(Set(run.log.excludedMirrors.map(\.path)) == ["/longer", "/changed"])
      #expect(run.log.restarts.isEmpty)
      #expect(servers[1].requests.count == 1 && servers[2].requests.count == 1)
    }

    @Test("Another version is begun anew where the one that was begun cannot be had any more")
    func anotherVersion() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      var other = ServedFile(byteCount: 3 << 20, seed: 2)
      other.entityTag = "\"other\""
      let rest = other
      let counter = Counter()
      let dying = try ScriptedServer { request in
        guard counter.next() == 1 else {
          return [.head("HTTP/1.1 404 Gone", "Content-Length: 0")]
        }
        return [file.answer(request)[0], .send(Array(file.bytes[..<(1 << 20)])), .reset]
      }
      let server = try ScriptedServer(answer: rest.answer)
      defer {
        dying.stop()
        server.stop()
      }
      var request = try request([dying.url("/dying"), server.url("/a")])
      request.connections = .exactly(1)
      let run = await client.run(request)
      #expect(run.result?.body == rest.bytes)
      #expect(run.log.restarts.count == 1)
    }

    @Test("What a request of the version before has gathered does not get into another version")
    func gatheredBefore() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      var other = ServedFile(byteCount: 4 << 20, seed: 2)
      other.entityTag = "\"other\""
      let rest = other
      let (counter, gate) = (Counter(), Gate())
      let dying = try ScriptedServer { request in
        switch counter.next() {
        case 1:
          // It stalls, and its delivered bytes are not stored yet.
          return [file.answer(request)[0], .send(Array(file.bytes[..<100_000])), .hold]
        default:
          // Reset only after the other mirror, which has another version, has been asked.
          return [.wait(for: gate), .reset]
        }
      }
      let server = try ScriptedServer { request in
        gate.open()
        return rest.answer(request)
      }
      defer {
        dying.stop()
        server.stop()
        gate.open()
      }
      var request = try request([dying.url("/dying"), server.url("/a")])
      request.retries = 1
      request.stallTimeout = .seconds(60)
      let run = await client.run(request)
      #expect(run.result?.body.fingerprint == rest.bytes.fingerprint, "\(run.log.restarts)")
      #expect(run.log.restarts.count == 1)
    }

    @Test("A server whose file has not the length that was said is refused")
    func wrongLength() async throws {
      let server = try ScriptedServer(answer: ServedFile(byteCount: 1000).answer)
      defer { server.stop() }
      var request = try request([server.url("/a")])
      request.completeLength = 1001
      #expect(await client.run(request).error?.code == .invalidResponse)
      request.completeLength = 1000
      #expect(await client.run(request).result?.byteCount == 1000)
    }

    @Test("Credentials of a mirror go to that mirror, fields to all that were named")
    func credentials() async throws {
      let file = ServedFile(byteCount: 1000)
      let server = try ScriptedServer(answer: file.answer)
      let other = try ScriptedServer { _ in [.head("HTTP/1.1 404 No", "Content-Length: 0")] }
      defer {
        server.stop()
        other.stop()
      }
      var request = try request([
        other.url("/a", userInfo: "one:first@"), server.url("/a", userInfo: "two:second@"),
      ])
      request.confidentialFields[.accept] = "x/y"
      #expect(await client.run(request).result?.byteCount == 1000)
      #expect(other.requests.first?["authorization"] == ["Basic b25lOmZpcnN0"])
      #expect(server.requests.first?["authorization"] == ["Basic dHdvOnNlY29uZA=="])
      #expect(server.requests.first?["accept"] == ["x/y"])
    }

    // MARK: Spreading

    @Test(
      "Mirrors with the same strong validator, or with a checksum that will tell, share the work")
    func spreading() async throws {
      for isChecked in [false, true] {
        let file = Self.pacedFile()
        var twin = file
        if isChecked { twin.entityTag = "\"twin\"" }
        let other = twin
        let servers = try [
          ScriptedServer(answer: file.answer), ScriptedServer(answer: other.answer),
        ]
        defer { for server in servers { server.stop() } }
        var request = try request(servers.map { $0.url("/a") })
        if isChecked { request.checksum = TestHashes.checksum(file.bytes) }
        let run = await client.run(request)
        #expect(run.result?.body == file.bytes)
        #expect(run.log.excludedMirrors.isEmpty)
        for server in servers { #expect(server.sentByteCount > 512 << 10) }
      }
    }

    // MARK: Wrong bytes

    private static func lying(_ file: ServedFile, at place: Int) -> ServedFile {
      var culprit = file
      culprit.bytes[place] ^= 1
      return culprit
    }

    @Test("A piece that is wrong is fetched from another mirror, and the culprit is named")
    func lyingPiece() async throws {
      let file = Self.pacedFile()
      // Once in the middle of the bytes that are fetched last, and once in the first ones.
      for place in [6 << 20, 100] {
        let culprit = Self.lying(file, at: place)
        let servers = try [
          ScriptedServer(answer: culprit.answer), ScriptedServer(answer: file.answer),
        ]
        defer { for server in servers { server.stop() } }
        let directory = try TemporaryDirectory()
        for destination in [Destination.memory(), .file(directory.file("a"))] {
          var request = try request(
            [servers[0].url("/culprit"), servers[1].url("/honest")], to: destination)
          request.pieces = TestHashes.pieces(file.bytes, of: 300_000)
          let run = await client.run(request)
          #expect(
            run.result?.byteCount == Int64(file.bytes.count), "\(String(describing: run.error))")
          if case .memory = destination { #expect(run.result?.body == file.bytes) }
          #expect(run.log.excludedMirrors.allSatisfy { $0.path == "/culprit" })
        }
        #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
        #expect(directory.names == ["a"])
      }
    }

    @Test("Where every mirror is wrong the transfer fails and the file does not appear")
    func allLie() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      let culprit = Self.lying(file, at: 1 << 20)
      let servers = try [
        ScriptedServer(answer: culprit.answer), ScriptedServer(answer: culprit.answer),
      ]
      defer { for server in servers { server.stop() } }
      for count in [1, 2] {
        let directory = try TemporaryDirectory()
        var request = try request(
          servers.prefix(count).map { $0.url("/a") }, to: .file(directory.file("a")))
        request.pieces = TestHashes.pieces(file.bytes, of: 1 << 20)
        let run = await client.run(request)
        #expect(run.error?.code == .checksumMismatch)
        #expect(run.error?.reason.contains("for bytes 1048576-2097151: expected sha-256=") == true)
        #expect(directory.contents("a") == nil)
      }
    }

    @Test("A piece that was wrong once only is mended by the only server", arguments: [1, 4])
    func mended(connections: Int) async throws {
      let file = ServedFile(byteCount: 4 << 20)
      let culprit = Self.lying(file, at: 1 << 20)
      let counter = Counter()
      let server = try ScriptedServer { request in
        counter.next() == 1 ? culprit.answer(request) : file.answer(request)
      }
      defer { server.stop() }
      var request = try request([server.url("/a")])
      request.pieces = TestHashes.pieces(file.bytes, of: 1 << 20)
      request.connections = .exactly(connections)
      let run = await client.run(request)
      #expect(run.result?.body == file.bytes)
      // With several connections, another one may have delivered it.
      if connections == 1 { #expect(run.log.negativeDifferences == [-(1 << 20)]) }
    }

    @Test("A wrong piece comes again from a server that sends shorter parts than asked for")
    func shortParts() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      let culprit = Self.lying(file, at: 1 << 20)
      let partByteCount = 256 << 10
      let counter = Counter()
      let server = try ScriptedServer { request in
        guard let range = request.range else { return [.reset] }
        let end = min(range.first + partByteCount, file.bytes.count)
        let isWrong = range.first...end ~= 1 << 20 && counter.next() == 1
        return [
          .head(
            "HTTP/1.1 206 Partial Content", "ETag: \"v1\"", "Content-Length: \(end - range.first)",
            "Content-Range: bytes \(range.first)-\(end - 1)/\(file.bytes.count)"),
          .send(Array((isWrong ? culprit : file).bytes[range.first..<end])),
        ]
      }
      defer { server.stop() }
      var request = try request([server.url("/a")])
      request.pieces = TestHashes.pieces(file.bytes, of: 1 << 20)
      let run = await client.run(request)
      #expect(
        run.result?.body.fingerprint == file.bytes.fingerprint, "\(String(describing: run.error))")
      #expect(server.requests.count < 60)
    }

    @Test(
      "A wrong piece comes again from a mirror that cuts each response", .timeLimit(.minutes(1)))
    func cutParts() async throws {
      let file = ServedFile(byteCount: 3 << 20)
      let culprit = Self.lying(file, at: 1 << 19)
      let counter = Counter()
      let servers = try [
        ScriptedServer { request in
          let isFirst = request.range.map { $0.first <= 1 << 19 } == true && counter.next() <= 2
          return (isFirst ? culprit : file).answer(request)
        },
        ScriptedServer { request in
          let steps = file.answer(request)
          guard case .send(let body) = steps[1], body.count > 100_000 else { return steps }
          return [steps[0], .send(Array(body[..<100_000])), .reset]
        },
      ]
      defer { for server in servers { server.stop() } }
      var request = try request(servers.map { $0.url("/a") })
      request.pieces = TestHashes.pieces(file.bytes, of: 1 << 19)
      let run = await client.run(request)
      #expect(
        run.result?.body.fingerprint == file.bytes.fingerprint, "\(String(describing: run.error))")
      #expect(servers[1].requests.count < 100)
    }

    @Test("A piece that is wrong each time ends a download that can only be repeated whole")
    func wrongWithoutRanges() async throws {
      var file = ServedFile(byteCount: 1 << 20)
      file.entityTag = nil
      file.servesRanges = false
      let culprit = Self.lying(file, at: 1000)
      let server = try ScriptedServer(answer: culprit.answer)
      defer { server.stop() }
      var request = try request([server.url("/a")])
      request.pieces = TestHashes.pieces(file.bytes, of: 1 << 18)
      let run = await client.run(request)
      #expect(run.error?.code == .checksumMismatch, "\(String(describing: run.error))")
      #expect(server.requests.count <= 4)
    }

    @Test("A checksum of the whole finds a lying mirror, too", arguments: [1, 4])
    func lyingWhole(connections: Int) async throws {
      let file = Self.pacedFile()
      let culprit = Self.lying(file, at: 6 << 20)
      let servers = try [
        ScriptedServer(answer: culprit.answer), ScriptedServer(answer: file.answer),
      ]
      defer { for server in servers { server.stop() } }
      let directory = try TemporaryDirectory()
      var request = try request(
        [servers[0].url("/culprit"), servers[1].url("/honest")], to: .file(directory.file("a")))
      request.connections = .exactly(connections)
      request.checksum = TestHashes.checksum(file.bytes)
      let run = await client.run(request)
      #expect(run.result != nil, "\(String(describing: run.error))")
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      #expect(directory.names == ["a"])
    }

    @Test("A partial file with a wrong piece is mended by the next run")
    func resumed() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      var culprit = Self.lying(file, at: 100)
      culprit.heldAfter = 3 << 20
      let held = culprit
      let counter = Counter()
      let server = try ScriptedServer { request in
        counter.next() == 1 ? held.answer(request) : file.answer(request)
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try request([server.url("/a")], to: .file(directory.file("a")))
      request.connections = .exactly(1)
      // One piece, which is incomplete when the first run ends.
      request.pieces = TestHashes.pieces(file.bytes, of: 4 << 20)
      let first = client.transfer(request)
      first.start()
      try await eventually { first.progress.receivedByteCount >= 2 << 20 }
      first.cancel()
      _ = try? await first.result()
      let run = await client.run(request)
      #expect(run.log.resumed > 0)
      #expect(run.result?.byteCount == 4 << 20)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    @Test(
      "Wrong bytes of an earlier run are fetched again, and only a culprit of this run is blamed")
    func inheritedLies() async throws {
      let (pieceByteCount, middle) = (512 << 10, 4 << 20)
      let file = ServedFile(byteCount: 2 * middle)
      var culprit = file
      culprit.bytes.replaceSubrange(..<middle, with: ServedFile.randomBytes(middle, seed: 2))
      culprit.heldAfter = middle
      let (held, lies) = (culprit, culprit.bytes)
      let (suspects, gate) = (Counter(), Gate())
      let lying = try SwitchedServer()
      let honest = try ScriptedServer { request in
        let steps = file.answer(request)
        guard (request.range?.first ?? 0) >= middle, case .send(let body) = steps[1] else {
          return steps
        }
        // Slow, so that the liar gets more to do.
        let first = body.prefix(32 << 10)
        return [
          steps[0], .send(Array(first)), .pause(milliseconds: 600),
          .send(Array(body.dropFirst(first.count))),
        ]
      }
      defer {
        gate.open()
        honest.stop()
      }
      let directory = try TemporaryDirectory()
      var request = try request([lying.url("/culprit")], to: .file(directory.file("a")))
      request.pieces = TestHashes.pieces(file.bytes, of: pieceByteCount)
      request.connections = .exactly(1)

      // The earlier run leaves nothing but wrong pieces.
      lying.answer(held.answer)
      let first = client.transfer(request)
      first.start()
      try await eventually { first.progress.retryCount >= 4 }
      first.cancel()
      _ = try? await first.result()

      lying.answer { request in
        guard let range = request.range, range.first < middle else { return file.answer(request) }
        let head = file.answer(request)[0]
        guard suspects.next() == 1 else {
          let end = min((range.last ?? file.bytes.count - 1) + 1, file.bytes.count)
          return [
            head, .wait(for: gate), .pause(milliseconds: 100),
            .send(Array(lies[range.first..<end])),
          ]
        }
        // Its bytes of this piece wait to be stored when another piece is found wrong.
        gate.open()
        let half = range.first + pieceByteCount / 2
        return [head, .send(Array(lies[range.first..<half])), .hold]
      }
      request.mirrors = [try RemoteURL(honest.url("/honest"))]
      request.connections = .exactly(4)
      let run = await client.run(request)
      #expect(run.log.resumed > 0)
      #expect(
        run.result?.byteCount == Int64(file.bytes.count), "\(String(describing: run.error))")
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      #expect(run.log.excludedMirrors.map(\.path) == ["/culprit"])
    }

    @Test("A partial file whose pieces were to be compared is not gone on with without them")
    func withoutPieces() async throws {
      var file = ServedFile(byteCount: 4 << 20)
      file.heldAfter = 3 << 20
      let held = file
      file.heldAfter = nil
      let whole = file
      let counter = Counter()
      let server = try ScriptedServer { request in
        counter.next() == 1 ? held.answer(request) : whole.answer(request)
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try request([server.url("/a")], to: .file(directory.file("a")))
      request.pieces = TestHashes.pieces(file.bytes, of: 1 << 20)
      let first = client.transfer(request)
      first.start()
      try await eventually { first.progress.receivedByteCount >= 2 << 20 }
      first.cancel()
      _ = try? await first.result()
      request.pieces = nil
      let run = await client.run(request)
      #expect(run.log.resumed == 0)
      #expect(run.result?.byteCount == 4 << 20)
    }
  }
}
