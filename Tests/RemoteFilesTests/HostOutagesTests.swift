import Glibc
import HTTPTransfer
import HTTPTransferCore
import Testing

@testable import RemoteFiles

/// How long a mount waits for a server that cannot be reached.
@Suite struct HostOutagesTests {
  private let start = ContinuousClock.now
  private let outages: HostOutages

  init() {
    outages = HostOutages(limit: .seconds(60), firstLimit: .seconds(5))
    outages.recordContact(with: "http://a")
  }

  /// Records a failure of `origin` after `seconds`; returns whether the server counts as gone.
  private func fail(
    _ origin: String = "http://a", _ code: FileError.Code = .unreachable, at seconds: Int
  ) -> Bool {
    outages.record(
      FileError(
        code, "reason", origin: origin,
        isUnreachable: code == .unreachable || code == .disconnected || code == .timedOut),
      now: start + .seconds(seconds))
  }

  private func mayAsk(_ origin: String = "http://a", at seconds: Double) -> Bool {
    outages.refusal(of: origin, now: start + .seconds(seconds)) == nil
  }

  @Test("A server counts as gone after a minute of failures, and is then probed once a second")
  func gone() {
    for second in [0, 20, 40, 58] { #expect(!fail(at: second)) }
    #expect(mayAsk(at: 58))
    #expect(fail(at: 60))
    #expect(mayAsk(at: 60))
    #expect(!mayAsk(at: 60.5))
    #expect(mayAsk(at: 61))
    #expect(mayAsk("http://b", at: 60.5))
    // It stays gone while nobody asks.
    #expect(fail(at: 4000))
  }

  @Test(
    "An answer ends the outage", arguments: [FileError.Code.unavailable, .invalidResponse, nil])
  func answered(code: FileError.Code?) {
    for second in stride(from: 0, through: 60, by: 20) { _ = fail(at: second) }
    if let code {
      #expect(!fail("http://a", code, at: 61))
    } else {
      outages.recordContact(with: "http://a")
    }
    #expect(mayAsk(at: 61) && mayAsk(at: 61))
    #expect(!fail(at: 62))
  }

  @Test("A server that has never answered counts as gone after five seconds")
  func neverAnswered() {
    for second in 0..<4 { #expect(!fail("http://new", at: second)) }
    #expect(fail("http://new", at: 4))
  }

  @Test("Failures with a pause between them belong to two outages")
  func pause() {
    #expect(!fail(at: 0))
    #expect(!fail(at: 100))
    #expect(!fail(at: 130 - 1))
    #expect(!fail(at: 158))
    #expect(fail(at: 159))
  }

  @Test("Other failures are no outage")
  func others() {
    for code in FileError.Code.allCases
    where ![.unreachable, .disconnected, .timedOut].contains(code) {
      for second in stride(from: 0, through: 80, by: 20) {
        #expect(!fail("http://\(code)", code, at: second))
      }
    }
  }

  @Test("An origin that redirects is reachable, whether or not its target is")
  func redirects() throws {
    let asked = try RemoteURL("http://a/f")
    let reached = try RemoteURL("http://b/f")
    for second in [0, 20, 40, 60] { _ = fail(at: second) }
    #expect(outages.isGone("http://a"))
    outages.recordEnd(
      .failed(ExchangeError(code: .connectionRefused, url: asked, detail: "")), asked: asked)
    #expect(outages.isGone("http://a"))
    outages.recordEnd(
      .failed(ExchangeError(code: .connectionRefused, url: reached, detail: "")), asked: asked)
    #expect(!outages.isGone("http://a"))

    for origin in ["http://a", "http://b"] {
      for second in [100, 120, 140, 160] { _ = fail(origin, at: second) }
      #expect(outages.isGone(origin))
    }
    outages.recordContact(asked: asked, reached: reached)
    #expect(!outages.isGone("http://a") && !outages.isGone("http://b"))
  }

  @Test("A host that accepts no connection in time is gone, too, and reads of it fail with EIO")
  func silentHost() {
    for second in [0, 20, 40] { #expect(!fail("http://a", .timedOut, at: second)) }
    #expect(fail("http://a", .timedOut, at: 60))
    #expect(outages.refusal(of: "http://a", now: start + .seconds(60)) == nil)
    #expect(outages.refusal(of: "http://a", now: start + .seconds(60))?.readErrno == EIO)
  }

  @Test("The time for which the process was suspended does not count")
  func suspension() {
    #expect(!fail(at: 0))
    outages.postpone(by: .seconds(100))
    #expect(!fail(at: 110))
    #expect(!fail(at: 130))
    #expect(fail(at: 159))
  }

  @Test("The number of remembered origins is bounded")
  func bounded() {
    let count = HostOutages.maximumOriginCount
    for index in 0..<count { _ = fail("http://host\(index)", at: 0) }
    for second in 1...9 { #expect(!fail("http://new", at: second)) }
    // Old outages make room.
    for second in 40..<44 { _ = fail("http://new", at: second) }
    #expect(fail("http://new", at: 44))
  }
}
