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
    outages.recordContact(with: "http://a", isListed: true)
  }

  /// Records a failure of `origin` after `seconds`; returns whether the server counts as gone.
  private func fail(
    _ origin: String = "http://a", _ code: FileError.Code = .unreachable, at seconds: Int
  ) -> Bool {
    outages.record(
      FileError(
        code, "reason", origin: origin,
        contact: code == .unreachable || code == .disconnected || code == .timedOut
          ? .unreachable : .accepted),
      now: start + .seconds(seconds))
  }

  private func mayAsk(_ origin: String = "http://a", at seconds: Double) throws -> Bool {
    let url = try RemoteURL(origin + "/file")
    if case .refused = outages.permit(to: url, now: start + .seconds(seconds)) { return false }
    return true
  }

  @Test("A server counts as gone after a minute of failures, and is then probed once a second")
  func gone() throws {
    for second in [0, 20, 40, 58] { #expect(!fail(at: second)) }
    #expect(try mayAsk(at: 58))
    #expect(fail(at: 60))
    #expect(try mayAsk(at: 60))
    #expect(try !mayAsk(at: 60.5))
    #expect(try mayAsk(at: 61))
    #expect(try mayAsk("http://b", at: 60.5))
    // It stays gone while nobody asks.
    #expect(fail(at: 4000))
  }

  @Test("An answer ends the outage")
  func answered() throws {
    for second in stride(from: 0, through: 60, by: 20) { _ = fail(at: second) }
    outages.recordContact(with: "http://a", isListed: true)
    #expect(try mayAsk(at: 61) && mayAsk(at: 61))
    #expect(!fail(at: 62))
  }

  @Test(
    "A connection without an answer lets requests through until the next one fails",
    arguments: [FileError.Code.unavailable, .invalidResponse, .refused, nil])
  func accepted(code: FileError.Code?) throws {
    for second in stride(from: 0, through: 60, by: 20) { _ = fail(at: second) }
    if let code {
      #expect(!fail("http://a", code, at: 61))
    } else {
      outages.accepted(try RemoteURL("http://a/file"))
    }
    #expect(try mayAsk(at: 61) && mayAsk(at: 61))
    #expect(fail(at: 62))
  }

  @Test("A server that accepts connections but never answers counts as gone after five seconds")
  func acceptedOnly() throws {
    for second in 0..<4 {
      #expect(!fail("http://new", at: second))
      outages.accepted(try RemoteURL("http://new/file"))
    }
    #expect(fail("http://new", at: 4))
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

  @Test("A host that accepts no connection in time is gone, too, and reads of it fail with EIO")
  func silentHost() throws {
    for second in [0, 20, 40] { #expect(!fail("http://a", .timedOut, at: second)) }
    #expect(fail("http://a", .timedOut, at: 60))
    let url = try RemoteURL("http://a/file")
    guard case .probe = outages.permit(to: url, now: start + .seconds(60)),
      case .refused(let error) = outages.permit(to: url, now: start + .seconds(60))
    else {
      Issue.record("not gone")
      return
    }
    #expect(FileError(error).readErrno == EIO)
    #expect(FileError(error).reason == "reason")
  }

  @Test("One scout goes on looking for a server that takes too long to connect")
  func scout() throws {
    let url = try RemoteURL("http://a/file")
    let late = ExchangeError(code: .connectionTimedOut, url: url, detail: "late")
    #expect(!outages.beginScout(after: late), "the server is not gone")
    for second in [0, 20, 40] { #expect(!fail("http://a", .timedOut, at: second)) }
    #expect(fail("http://a", .timedOut, at: 60))
    let refused = ExchangeError(code: .connectionRefused, url: url, detail: "")
    #expect(!outages.beginScout(after: refused), "a refusal takes no time")
    #expect(outages.beginScout(after: late))
    #expect(!outages.beginScout(after: late))
    #expect(try !mayAsk(at: 70), "the scout is looking")
    outages.endScout(of: "http://a")
    #expect(try mayAsk(at: 70))
    #expect(outages.beginScout(after: late))
    outages.recordContact(with: "http://a", isListed: false)
    outages.endScout(of: "http://a")
    #expect(try mayAsk(at: 70) && mayAsk(at: 70))
  }

  @Test("The time for which the process was suspended does not count")
  func suspension() {
    #expect(!fail(at: 0))
    outages.postpone(by: .seconds(100), now: start + .seconds(100))
    #expect(!fail(at: 110))
    #expect(!fail(at: 130))
    #expect(fail(at: 159))
  }

  @Test("A failure that is older than the suspension stays in the past")
  func suspensionAfterFailure() {
    #expect(!fail(at: 100))
    outages.postpone(by: .seconds(1000), now: start + .seconds(101))
    for second in [120, 140, 155] { #expect(!fail(at: second)) }
    #expect(fail(at: 160))
  }

  @Test("The number of origins to which redirects lead is bounded, and they displace no listed one")
  func bounded() {
    for index in 0...HostOutages.maximumOriginCount {
      outages.recordContact(with: "http://host\(index)", isListed: false)
      _ = fail("http://dead\(index)", at: 0)
    }
    // The listed server has its minute.
    for second in [1, 20, 40, 58] { #expect(!fail(at: second)) }
    #expect(fail(at: 60))
  }
}
