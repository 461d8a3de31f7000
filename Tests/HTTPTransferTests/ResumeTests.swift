import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Interrupted downloads, and later downloads that resume them.
  @Suite struct Resuming {
    private static let byteCount = 3 << 20

    private let client = TransferClient()
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Downloads a part of `file`, then cancels.
    ///
    /// - Parameters:
    ///   - file: the file to serve.
    ///   - server: the server of the file.
    ///   - path: the path of its URL.
    ///   - name: the destination in the test's directory.
    ///   - change: modifies the request.
    /// - Returns: the number of bytes present at the end.
    /// - Throws: if the test's time is up.
    private func interrupt(
      _ file: ServedFile, at server: SwitchedServer, _ path: String = "/f", to name: String = "a",
      _ change: (inout Request) -> Void = { _ in }
    ) async throws -> Int64 {
      var file = file
      file.heldAfter = 1 << 20
      server.answer(file.answer)
      let transfer = client.transfer(try request(server, path, name, change))
      transfer.start()
      try await eventually { transfer.progress.receivedByteCount >= 512 << 10 }
      transfer.cancel()
      let run = await TransferRun(transfer)
      #expect(run.error?.code == .cancelled)
      #expect(run.log.failure?.code == .cancelled)
      #expect(transfer.state == .cancelled)
      return transfer.progress.receivedByteCount
    }

    private func request(
      _ server: SwitchedServer, _ path: String = "/f", _ name: String = "a",
      _ change: (inout Request) -> Void = { _ in }
    ) throws -> Request {
      var request = try Request.quick(server.url(path), to: .file(directory.file(name)))
      change(&request)
      return request
    }

    @Test(
      "A partial file without a record is begun again: without a word where it is small",
      arguments: [0, 1, 1 << 20])
    func partialFileWithoutRecord(byteCount: Int) async throws {
      let file = ServedFile(byteCount: Self.byteCount)
      let server = try SwitchedServer()
      server.answer(file.answer)
      try directory.write(Array(repeating: 1, count: byteCount), to: "a.httpfs-part")
      let run = await client.run(try request(server))
      #expect(run.log.restarts.count == (byteCount > 1 ? 1 : 0))
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    // MARK: The same version

    @Test("A cancelled download keeps its bytes and goes on there")
    func goesOn() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: Self.byteCount)
      let present = try await interrupt(file, at: server)
      #expect(directory.names == ["a.httpfs-part", "a.httpfs-part.record"])
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      #expect(directory.names == ["a"])
      #expect(run.result?.resumedByteCount == present)
      #expect(run.log.resumed == present)
      #expect(run.log.startedTotal == Int64(Self.byteCount))
      #expect(run.log.restarts == [])
      // Only the missing bytes were sent.
      #expect(run.result?.rawByteCount == Int64(Self.byteCount) - present)
      #expect(server.requestsSinceAnswer.first?.range?.first == Int(present))
      // Bytes of an earlier run do not count for the speed.
      let speed = run.transfer.progress.averageBytesPerSecond
      let seconds = run.transfer.progress.elapsed / .seconds(1)
      #expect(speed * seconds < Double(Self.byteCount) - Double(present) + 1000)
    }

    @Test("A small download has a record only once it is interrupted, and goes on there")
    func small() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: 100_000)
      var held = file
      held.heldAfter = 60_000
      server.answer(held.answer)
      let transfer = client.transfer(try request(server))
      transfer.start()
      try await eventually { directory.names == ["a.httpfs-part"] }
      // Received bytes are gathered for this time.
      try await Task.sleep(for: .milliseconds(300))
      #expect(directory.names == ["a.httpfs-part"])
      transfer.cancel()
      _ = await TransferRun(transfer)
      let present = transfer.progress.receivedByteCount
      #expect(directory.names == ["a.httpfs-part", "a.httpfs-part.record"])
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(run.result?.resumedByteCount == present)
      #expect(run.log.restarts == [])
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      #expect(directory.names == ["a"])
    }

    @Test("A small download that was killed leaves no record, and begins anew without a word")
    func smallAndKilled() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: 100_000)
      try directory.write(Array(repeating: 1, count: 60_000), to: "a.httpfs-part")
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(run.result?.resumedByteCount == 0)
      #expect(run.log.restarts == [])
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      #expect(directory.names == ["a"])
    }

    @Test("A download that another one cancelled twice over is whole at the end")
    func twice() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: Self.byteCount)
      let first = try await interrupt(file, at: server)
      var held = file
      held.heldAfter = 1 << 20
      server.answer(held.answer)
      let transfer = client.transfer(try request(server))
      transfer.start()
      try await eventually { transfer.progress.receivedByteCount >= first + (512 << 10) }
      transfer.cancel()
      _ = await TransferRun(transfer)
      let second = transfer.progress.receivedByteCount
      #expect(second > first)
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(run.result?.resumedByteCount == second)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    @Test("A range of a file goes on as well")
    func range() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: Self.byteCount)
      let range: ByteRange = 100_000..<3_000_000
      let present = try await interrupt(file, at: server) { $0.range = range }
      server.answer(file.answer)
      let run = await client.run(try request(server) { $0.range = range })
      #expect(run.result?.resumedByteCount == present)
      #expect(directory.contents("a")?.fingerprint == file.bytes[100_000..<3_000_000].fingerprint)
    }

    @Test("What several connections have left of a range is gone on with at the right places")
    func rangeWithHoles() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: 12 << 20)
      var paced = file
      paced.isPaced = true
      let pacedFile = paced
      let range: ByteRange = (2 << 20)..<(12 << 20)
      server.answer { request in
        // Each connection delivers a part of its segment, the first a larger one.
        let isFirst = request.range?.first == 2 << 20
        return pacedFile.answer(request).prefix(isFirst ? 64 : 32) + [.hold]
      }
      let transfer = client.transfer(
        try request(server) {
          $0.range = range
          $0.connections = .exactly(2)
        })
      transfer.start()
      try await eventually {
        server.requestsSinceAnswer.count > 1 && transfer.progress.receivedByteCount > 2 << 20
      }
      transfer.cancel()
      _ = await TransferRun(transfer)
      let present = transfer.progress.receivedByteCount
      server.answer(file.answer)
      let run = await client.run(try request(server) { $0.range = range })
      #expect(run.result?.resumedByteCount == present)
      #expect(directory.contents("a")?.fingerprint == file.bytes[(2 << 20)...].fingerprint)
    }

    @Test("A modification date a second before the response is validator enough")
    func modificationDate() async throws {
      let server = try SwitchedServer()
      var file = ServedFile(byteCount: Self.byteCount)
      file.entityTag = nil
      file.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
      file.date = "Sun, 06 Nov 1994 08:49:38 GMT"
      let present = try await interrupt(file, at: server)
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(run.result?.resumedByteCount == present)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    @Test("Two files whose names differ in the extension only have partial files of their own")
    func neighbours() async throws {
      let server = try SwitchedServer()
      let iso = ServedFile(byteCount: Self.byteCount, seed: 1)
      let zip = ServedFile(byteCount: Self.byteCount, seed: 2)
      _ = try await interrupt(iso, at: server, "/a.iso", to: "a.iso")
      _ = try await interrupt(zip, at: server, "/a.zip", to: "a.zip")
      #expect(directory.names.count == 4)
      server.answer { $0.target == "/a.iso" ? iso.answer($0) : zip.answer($0) }
      let runs = [
        await client.run(try request(server, "/a.iso", "a.iso")),
        await client.run(try request(server, "/a.zip", "a.zip")),
      ]
      #expect(runs.allSatisfy { $0.log.resumed > 0 })
      #expect(directory.contents("a.iso")?.fingerprint == iso.bytes.fingerprint)
      #expect(directory.contents("a.zip")?.fingerprint == zip.bytes.fingerprint)
      #expect(directory.names == ["a.iso", "a.zip"])
    }

    @Test("A file that was modified this very second is asked for again, then gone on with")
    func freshDate() async throws {
      let server = try SwitchedServer()
      var file = ServedFile(byteCount: Self.byteCount)
      file.entityTag = nil
      file.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
      file.date = file.lastModified
      var later = file
      later.date = "Sun, 06 Nov 1994 08:49:38 GMT"
      let answers = (file, later)
      let count = Counter()
      server.answer { count.next() == 1 ? answers.0.answer($0) : answers.1.answer($0) }
      let start = ContinuousClock.now
      let run = await client.run(try request(server))
      #expect(.now - start >= .milliseconds(900))
      #expect(run.log.retries.count == 1)
      #expect(run.log.restarts.isEmpty)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    // MARK: From the start

    /// The reason that a partial file cannot be resumed.
    enum Obstacle: String, CaseIterable, Sendable {
      case changedTag, changedLength, weakTag, undated, noValidator, otherURL, otherRange,
        damagedRecord, shortRecord, noRecord, emptyRecord
    }

    @Test("What proves nothing is not gone on with, and that is said", arguments: Obstacle.allCases)
    func fromTheStart(_ obstacle: Obstacle) async throws {
      let server = try SwitchedServer()
      var file = ServedFile(byteCount: Self.byteCount, seed: 1)
      switch obstacle {
      case .weakTag: file.entityTag = "W/\"v1\""
      case .noValidator: file.entityTag = nil
      case .undated:
        // It is unknown whether the file was modified in the second of the response.
        file.entityTag = nil
        file.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
      default: break
      }
      _ = try await interrupt(file, at: server)
      let record = directory.file("a.httpfs-part.record")
      switch obstacle {
      case .changedTag:
        file = ServedFile(byteCount: Self.byteCount, seed: 2)
        file.entityTag = "\"v2\""
      case .changedLength: file = ServedFile(byteCount: Self.byteCount + 1, seed: 2)
      case .weakTag, .undated, .noValidator:
        file.bytes = ServedFile.randomBytes(Self.byteCount, seed: 2)
      case .otherURL, .otherRange: break
      case .damagedRecord: try Self.flip(record, at: 40)
      case .shortRecord: try Self.truncate(record, to: 20)
      case .noRecord: try FileManager.default.removeItem(atPath: record)
      case .emptyRecord: try Self.truncate(record, to: 0)
      }
      server.answer(file.answer)
      let run = await client.run(
        try request(server, obstacle == .otherURL ? "/other" : "/f") {
          if obstacle == .otherRange { $0.range = 1..<Int64(Self.byteCount) }
        })
      let wanted = obstacle == .otherRange ? Array(file.bytes[1...]) : file.bytes
      #expect(directory.contents("a")?.fingerprint == wanted.fingerprint)
      #expect(directory.names == ["a"])
      #expect(run.result?.resumedByteCount == 0)
      #expect(run.log.restarts.count == 1, "\(run.log.restarts)")
    }

    @Test("A record that lost its end costs what it no longer tells")
    func lostEnd() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: Self.byteCount)
      _ = try await interrupt(file, at: server)
      let record = directory.file("a.httpfs-part.record")
      let byteCount = try #require(FileManager.default.contents(atPath: record)).count
      try Self.truncate(record, to: byteCount - 1)
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(run.result != nil)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    @Test(
      "A bit that flipped in the partial file is noticed, and fetched again",
      arguments: [0, 700_000])
    func bitFlip(offset: UInt64) async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: Self.byteCount)
      let present = try await interrupt(file, at: server)
      try Self.flip(directory.file("a.httpfs-part"), at: offset)
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      let resumed = try #require(run.result?.resumedByteCount)
      #expect(resumed < present)
    }

    @Test("A partial file that was cut is fetched again where it lacks")
    func cutPart() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: Self.byteCount)
      let present = try await interrupt(file, at: server)
      try Self.truncate(directory.file("a.httpfs-part"), to: 600_000)
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      let resumed = try #require(run.result?.resumedByteCount)
      #expect(resumed < present)
    }

    @Test("A download that is not to resume begins anew and says nothing of it")
    func resumesNot() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: Self.byteCount)
      _ = try await interrupt(file, at: server)
      server.answer(file.answer)
      let run = await client.run(try request(server) { $0.resumes = false })
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      #expect(run.result?.resumedByteCount == 0)
      #expect(run.result?.rawByteCount == Int64(Self.byteCount))
      #expect(directory.names == ["a"])
    }

    @Test("A server that no longer takes ranges is read from the start, with right bytes and sums")
    func rangesGone() async throws {
      let server = try SwitchedServer()
      var file = ServedFile(byteCount: Self.byteCount)
      _ = try await interrupt(file, at: server)
      file.servesRanges = false
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(run.result?.byteCount == Int64(Self.byteCount))
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    @Test("A file that changes under the download is begun anew, and never mixed")
    func changesUnderway() async throws {
      let server = try SwitchedServer()
      let old = ServedFile(byteCount: Self.byteCount, seed: 1)
      var new = ServedFile(byteCount: Self.byteCount - 77, seed: 2)
      new.entityTag = "\"v2\""
      let tries = Counter()
      let newFile = new
      server.answer { request in
        guard tries.next() == 1 else { return newFile.answer(request) }
        let steps = old.answer(request)
        return [steps[0], .send(Array(old.bytes[..<(1 << 20)])), .close]
      }
      let run = await client.run(try request(server) { $0.retries = 2 })
      #expect(directory.contents("a")?.fingerprint == new.bytes.fingerprint)
      #expect(run.log.restarts.count == 1)
      #expect(run.result?.byteCount == Int64(new.bytes.count))
    }

    @Test("A failed resumption leaves what was there")
    func failedResumption() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: Self.byteCount)
      let present = try await interrupt(file, at: server)
      server.answer { _ in [.head("HTTP/1.1 404 Not Found", "Content-Length: 0")] }
      #expect(await client.run(try request(server)).error?.status == 404)
      server.answer { _ in [.reset] }
      #expect(await client.run(try request(server)).error?.code == .connectionLost)
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(run.result?.resumedByteCount == present)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    @Test("What was complete but for its name needs one byte to be confirmed")
    func complete() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: Self.byteCount)
      let gate = Gate()
      server.answer { request in
        // The last byte arrives late, so the download can be cancelled before it is finished.
        let steps = file.answer(request)
        return [steps[0], .send(Array(file.bytes.dropLast())), .wait(for: gate)]
      }
      defer { gate.open() }
      let transfer = client.transfer(try request(server))
      transfer.start()
      try await eventually { transfer.progress.receivedByteCount >= 2 << 20 }
      transfer.cancel()
      _ = await TransferRun(transfer)
      server.answer(file.answer)
      let run = await client.run(try request(server))
      #expect(run.result?.rawByteCount ?? .max < 2 << 20)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }

    // MARK: Clearing

    @Test("A download that is cancelled and cleared leaves nothing and ends without a word")
    func clear() async throws {
      let server = try SwitchedServer()
      var file = ServedFile(byteCount: Self.byteCount)
      file.heldAfter = 1 << 20
      server.answer(file.answer)
      let transfer = client.transfer(try request(server))
      let events = transfer.events
      async let log = EventLog(events)
      transfer.start()
      try await eventually { transfer.progress.receivedByteCount >= 512 << 10 }
      #expect(directory.names.count == 2)
      transfer.cancelAndClear()
      await #expect(throws: TransferError.self) { _ = try await transfer.result() }
      await log.checkOrder(isSilent: true, #_sourceLocation)
      #expect(directory.names == [])
      #expect(transfer.state == .cancelled)
    }

    @Test("Clearing before the start removes what an earlier run has left, and nothing else")
    func clearEarly() async throws {
      let server = try SwitchedServer()
      let file = ServedFile(byteCount: Self.byteCount)
      try directory.write([1], to: "b")
      _ = try await interrupt(file, at: server)
      let transfer = client.transfer(try request(server))
      transfer.cancelAndClear()
      await #expect(throws: TransferError.self) { _ = try await transfer.result() }
      #expect(directory.names == ["b"])
    }

    // MARK: Damage

    private static func flip(_ path: String, at offset: UInt64) throws {
      let file = try #require(FileHandle(forUpdatingAtPath: path))
      try file.seek(toOffset: offset)
      let byte = try #require(try file.read(upToCount: 1)?.first)
      try file.seek(toOffset: offset)
      try file.write(contentsOf: Data([byte ^ 0x10]))
      try file.close()
    }

    private static func truncate(_ path: String, to byteCount: Int) throws {
      let file = try #require(FileHandle(forUpdatingAtPath: path))
      try file.truncate(atOffset: UInt64(byteCount))
      try file.close()
    }
  }
}
