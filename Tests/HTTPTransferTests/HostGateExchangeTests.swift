import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Synchronization
import Testing

extension TransferTests {
  /// The effect of a requested delay on other requests of the same client.
  @Suite(.timeLimit(.minutes(3))) struct RetryAfterGates {
    /// A server that refuses its first request with `fields`, and serves the others.
    private func server(status: Int = 503, _ fields: String...) throws -> ScriptedServer {
      let count = Counter()
      return try ScriptedServer { [fields] _ in
        guard count.next() == 1 else { return ScriptedServer.ok("end") }
        let lines = ["HTTP/1.1 \(status) Later", "Content-Length: 0"] + fields + ["", ""]
        return [.send(Array(lines.joined(separator: "\r\n").utf8))]
      }
    }

    private static func date(_ offset: TimeInterval) -> String {
      let formatter = DateFormatter()
      formatter.locale = Locale(identifier: "en_US_POSIX")
      formatter.timeZone = TimeZone(secondsFromGMT: 0)
      formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
      return formatter.string(from: Date(timeIntervalSinceNow: offset))
    }

    /// Sends a first request, whose refusal delays the other requests of `client` for 600 s.
    ///
    /// This is far longer than the pause between two lines of the test on a busy machine.
    private func closeGate(_ server: ScriptedServer, of client: ExchangeClient) async throws {
      var request = ExchangeRequest(url: try RemoteURL(server.url("/first")))
      request.retryAfterCeiling = .seconds(600)
      _ = await client.record(request)
    }

    /// The duration of two exchanges, of which the first one is refused.
    ///
    /// The second one has waited at least that long.
    private func delay(
      after server: ScriptedServer, ceiling: Duration = .seconds(30)
    ) async throws -> Duration {
      let client = ExchangeClient()
      var request = ExchangeRequest(url: try RemoteURL(server.url("/a")))
      request.retryAfterCeiling = ceiling
      let start = ContinuousClock.now
      _ = await client.record(request)
      let record = try await client.record(server.url("/b"))
      #expect(record.text == "end")
      return .now - start
    }

    @Test("Another exchange waits until the moment has come", arguments: [429, 503])
    func seconds(status: Int) async throws {
      let server = try server(status: status, "Retry-After: 1")
      defer { server.stop() }
      let delay = try await delay(after: server)
      #expect((.milliseconds(950) ... .seconds(100)).contains(delay), "\(delay)")
    }

    @Test("A date in the future is waited for, by the server's clock or by ours")
    func dates() async throws {
      for fields in [["Date: " + Self.date(-9000), "Retry-After: " + Self.date(-8998)]] {
        let server = try server(fields[0], fields[1])
        defer { server.stop() }
        let delay = try await delay(after: server)
        #expect((.milliseconds(1950) ... .seconds(100)).contains(delay), "\(delay)")
      }
      let server = try server("Retry-After: " + Self.date(2.9))
      defer { server.stop() }
      let delay = try await delay(after: server)
      #expect((.milliseconds(900) ... .seconds(100)).contains(delay), "\(delay)")
    }

    @Test(
      "What names no delay, or none that is left, holds nobody back",
      arguments: ["Retry-After: 0", "Retry-After: soon", "Retry-After: -1", "past", "X-None: 1"])
    func none(field: String) async throws {
      let server = try server(
        field == "past" ? "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT" : field)
      defer { server.stop() }
      // On a busy machine, seconds pass between two lines of the test.
      let delay = try await delay(after: server, ceiling: .seconds(600))
      #expect(delay < .seconds(100), "\(delay)")
    }

    @Test("A delay beyond all bounds is cut to the ceiling")
    func huge() async throws {
      let server = try server("Retry-After: 99999999999999999999")
      defer { server.stop() }
      let delay = try await delay(after: server, ceiling: .seconds(1))
      #expect((.milliseconds(950) ... .seconds(100)).contains(delay), "\(delay)")
    }

    @Test("Other statuses close no gate", arguments: [200, 404, 500])
    func otherStatuses(status: Int) async throws {
      let server = try server(status: status, "Retry-After: 600")
      defer { server.stop() }
      #expect(try await delay(after: server, ceiling: .seconds(600)) < .seconds(100))
    }

    @Test("Other origins go on")
    func otherOrigins() async throws {
      let gated = try server("Retry-After: 600")
      let free = try ScriptedServer { _ in ScriptedServer.ok("free") }
      defer {
        gated.stop()
        free.stop()
      }
      let client = ExchangeClient()
      try await closeGate(gated, of: client)
      let start = ContinuousClock.now
      #expect(try await client.record(free.url("/")).text == "free")
      #expect(.now - start < .seconds(100))
    }

    @Test("What is held back can be cancelled")
    func cancelHeld() async throws {
      let gated = try server("Retry-After: 600")
      defer { gated.stop() }
      let client = ExchangeClient()
      try await closeGate(gated, of: client)
      let receiver = RecordingReceiver()
      let id = client.start(
        ExchangeRequest(url: try RemoteURL(gated.url("/c"))), receiver: receiver)
      client.cancel(id)
      #expect(await receiver.finished().outcome == "cancelled")
      #expect(gated.requests.map(\.target) == ["/first"])
    }

    @Test("A redirect into a closed gate waits, too")
    func redirects() async throws {
      // The time is measured from before the refusal, so a busy machine cannot shorten it.
      let gated = try server("Retry-After: 6")
      let other = try ScriptedServer { _ in ScriptedServer.redirect(to: gated.url("/b")) }
      defer {
        gated.stop()
        other.stop()
      }
      let client = ExchangeClient()
      let start = ContinuousClock.now
      _ = try await client.record(gated.url("/a"))
      #expect(try await client.record(other.url("/")).text == "end")
      let delay = ContinuousClock.now - start
      #expect((.milliseconds(5900) ... .seconds(100)).contains(delay), "\(delay)")
      #expect(gated.requests.map(\.target) == ["/a", "/b"])
    }

    @Test("All transfers of a client wait, and say so")
    func transfers() async throws {
      let server = try server("Retry-After: 600")
      defer { server.stop() }
      let client = TransferClient()
      try await closeGate(server, of: client.exchanges)
      let transfer = client.transfer(try Request.quick(server.url("/a")))
      transfer.start()
      try await eventually {
        transfer.progress.reason != nil || transfer.progress.state == .finished
      }
      #expect(transfer.progress.reason?.hasPrefix("the server has asked for no request") == true)
      transfer.cancel()
      #expect(await TransferRun(transfer).error?.code == .cancelled)
      #expect(server.requests.map(\.target) == ["/first"])
    }

    @Test("A transfer that has waited goes on, and counts no retry")
    func goesOn() async throws {
      let server = try server("Retry-After: 2")
      defer { server.stop() }
      let client = TransferClient()
      let start = ContinuousClock.now
      _ = try await client.record(server.url("/first"))
      let transfer = client.transfer(try Request.quick(server.url("/a")))
      transfer.start()
      let run = await TransferRun(transfer)
      #expect(run.result?.byteCount == 3)
      #expect(run.log.retries.isEmpty)
      #expect(.now - start >= .milliseconds(1950))
    }
  }
}
