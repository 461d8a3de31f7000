import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Bodies whose destination is memory or a stream of chunks.
  @Suite struct BodyDestinations {
    private let client = TransferClient()

    // MARK: Memory

    @Test("Memory takes what its limit allows, to the byte", arguments: [true, false])
    func limit(isLengthKnown: Bool) async throws {
      let body = ServedFile.randomBytes(100_000)
      let server = try ScriptedServer { _ in
        isLengthKnown
          ? [.head("HTTP/1.1 200 OK", "Content-Length: 100000"), .send(body)]
          : [.head("HTTP/1.1 200 OK"), .send(body), .close]
      }
      defer { server.stop() }
      let whole = await client.run(try .quick(server.url("/"), to: .memory(limit: 100_000)))
      #expect(whole.result?.body.fingerprint == body.fingerprint)
      let cut = await client.run(try .quick(server.url("/"), to: .memory(limit: 99_999)))
      #expect(cut.error?.code == .tooLarge)
      #expect(server.requests.count == 2)
    }

    @Test("A body that grows when it is decoded is held to the limit of memory")
    func decodedLimit() async throws {
      // 1,000 times the letter a.
      let coded: [UInt8] = [
        0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0x4B, 0x4C, 0x1C, 0x05, 0xA3, 0x60, 0x14, 0x0C, 0x77,
        0x00, 0x00, 0x03, 0xDA, 0x38, 0x9A, 0xE8, 0x03, 0x00, 0x00,
      ]
      let server = try ScriptedServer { _ in
        [
          .head(
            "HTTP/1.1 200 OK", "Content-Encoding: gzip", "Content-Length: \(coded.count)"),
          .send(coded),
        ]
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"), to: .memory(limit: 999))
      request.decodesContent = true
      #expect(await client.run(request).error?.code == .tooLarge)
      request.destination = .memory(limit: 1000)
      #expect(
        await client.run(request).result?.body == [UInt8](repeating: UInt8(ascii: "a"), count: 1000)
      )
    }

    @Test("Memory is filled over several connections")
    func parallelMemory() async throws {
      var file = ServedFile(byteCount: 8 << 20)
      file.isPaced = true
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.connections = .exactly(4)
      let run = await client.run(request)
      #expect(run.result?.body.fingerprint == file.bytes.fingerprint)
      #expect(server.requests.count > 1)
    }

    // MARK: Streams

    @Test("Chunks come in order, and are the body")
    func stream() async throws {
      let file = ServedFile(byteCount: 5_000_001)
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      let transfer = client.transfer(try .quick(server.url("/"), to: .stream()))
      var bytes: [UInt8] = []
      for try await chunk in transfer.body {
        #expect(!chunk.isEmpty)
        bytes += chunk
      }
      #expect(bytes.fingerprint == file.bytes.fingerprint)
      let run = await TransferRun(transfer)
      #expect(run.result?.byteCount == 5_000_001)
      #expect(run.result?.body == [])
    }

    @Test("A range comes as a stream, too, in order")
    func rangeStream() async throws {
      let file = ServedFile(byteCount: 16 << 20)
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      var request = try Request.quick(server.url("/"), to: .stream())
      request.range = 1_000_000..<15_000_000
      let transfer = client.transfer(request)
      var bytes: [UInt8] = []
      for try await chunk in transfer.body { bytes += chunk }
      #expect(bytes.fingerprint == file.bytes[1_000_000..<15_000_000].fingerprint)
      let run = await TransferRun(transfer)
      #expect(run.result?.byteCount == 14_000_000)
      #expect(run.log.startedTotal == 14_000_000)
    }

    @Test(
      "A range is cut out of a body of a server that knows no ranges", arguments: [true, false])
    func rangeOfWhole(toStream: Bool) async throws {
      var file = ServedFile(byteCount: 1_000_000)
      file.servesRanges = false
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      var request = try Request.quick(server.url("/"), to: toStream ? .stream() : .memory())
      request.range = 400_000..<400_100
      let transfer = client.transfer(request)
      var bytes: [UInt8] = []
      for try await chunk in transfer.body { bytes += chunk }
      let run = await TransferRun(transfer)
      #expect(run.result?.byteCount == 100)
      #expect((toStream ? bytes : run.result?.body) == Array(file.bytes[400_000..<400_100]))
    }

    @Test("While nobody takes chunks the server waits; who takes them gets all")
    func backpressure() async throws {
      let mebibyte = ServedFile.randomBytes(1 << 20)
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK", "Content-Length: \(96 << 20)")]
          + Array(repeating: .send(mebibyte), count: 96)
      }
      defer { server.stop() }
      let transfer = client.transfer(
        try .quick(server.url("/"), to: .stream(bufferByteCount: 256 << 10)))
      var chunks = transfer.body.makeAsyncIterator()
      var byteCount = try #require(try await chunks.next()).count
      try await Task.sleep(for: .milliseconds(500))
      // Only the capacity of the sockets and the buffer.
      #expect(server.sentByteCount < 32 << 20)
      #expect(transfer.progress.receivedByteCount <= 1 << 20)
      let waiting = server.sentByteCount
      try await Task.sleep(for: .milliseconds(200))
      #expect(server.sentByteCount == waiting)
      while let chunk = try await chunks.next() {
        let start = byteCount % (1 << 20)
        let fit = min(chunk.count, (1 << 20) - start)
        // Byte by byte, 96 MiB would outlast the time limit in an unoptimised build.
        #expect(chunk.prefix(fit).fingerprint == mebibyte[start..<(start + fit)].fingerprint)
        byteCount += chunk.count
      }
      #expect(byteCount == 96 << 20)
      _ = await TransferRun(transfer)
    }

    @Test("Who stops taking by cancelling the task cancels the transfer")
    func cancelledTaker() async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK", "Content-Length: 1000"), .text("some"), .hold]
      }
      defer { server.stop() }
      let transfer = client.transfer(try .quick(server.url("/"), to: .stream()))
      let task = Task {
        var count = 0
        do throws(TransferError) {
          for try await chunk in transfer.body { count += chunk.count }
        } catch {
          return (count, Optional(error.code))
        }
        return (count, nil)
      }
      try await eventually { transfer.progress.receivedByteCount == 4 }
      task.cancel()
      let (count, code) = await task.value
      #expect(count == 4)
      #expect(code == .cancelled)
      #expect(await TransferRun(transfer).error?.code == .cancelled)
      try await eventually { server.openCount == 0 }
    }

    @Test("Cancelling the task that waits for the result cancels the transfer")
    func cancelledWaiter() async throws {
      let server = try ScriptedServer { _ in [.hold] }
      defer { server.stop() }
      let transfer = client.transfer(try .quick(server.url("/")))
      let task = Task {
        do throws(TransferError) {
          return Optional(try await transfer.result().byteCount)
        } catch {
          return nil
        }
      }
      try await server.waitForRequests(1)
      task.cancel()
      #expect(await task.value == nil)
      #expect(await TransferRun(transfer).error?.code == .cancelled)
      try await eventually { server.openCount == 0 }
      #expect(client.activeTransferCount == 0)
    }

    @Test("A stream that breaks after a part was handed on goes on behind it or fails")
    func brokenStream() async throws {
      let file = ServedFile(byteCount: 400_000)
      let tries = Counter()
      let server = try ScriptedServer { request in
        let steps = file.answer(request)
        guard tries.next() == 1 else { return steps }
        return [steps[0], .send(Array(file.bytes[..<150_000])), .close]
      }
      defer { server.stop() }
      let transfer = client.transfer(try .quick(server.url("/"), to: .stream()))
      var bytes: [UInt8] = []
      for try await chunk in transfer.body { bytes += chunk }
      #expect(bytes.fingerprint == file.bytes.fingerprint)
      #expect(await TransferRun(transfer).result?.byteCount == 400_000)
    }

    @Test("A stream whose file changes after a part was handed on fails, and never mixes")
    func changedStream() async throws {
      let old = ServedFile(byteCount: 400_000, seed: 1)
      var new = ServedFile(byteCount: 400_000, seed: 2)
      new.entityTag = "\"v2\""
      let newFile = new
      let tries = Counter()
      let server = try ScriptedServer { request in
        guard tries.next() == 1 else { return newFile.answer(request) }
        return [old.answer(request)[0], .send(Array(old.bytes[..<150_000])), .close]
      }
      defer { server.stop() }
      let transfer = client.transfer(try .quick(server.url("/"), to: .stream()))
      var bytes: [UInt8] = []
      var code: TransferError.Code?
      do throws(TransferError) {
        for try await chunk in transfer.body { bytes += chunk }
      } catch {
        code = error.code
      }
      #expect(code == .changed)
      #expect(bytes.elementsEqual(old.bytes.prefix(bytes.count)))
    }

    // MARK: HEAD

    @Test("HEAD brings the head alone")
    func head() async throws {
      let server = try ScriptedServer(answer: ServedFile(byteCount: 5000).answer)
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.method = .head
      let run = await client.run(request)
      #expect(run.result?.response.headerFields[.contentLength] == "5000")
      #expect(run.result?.byteCount == 0)
      #expect(server.requests.map(\.method) == ["HEAD"])
    }
  }
}
