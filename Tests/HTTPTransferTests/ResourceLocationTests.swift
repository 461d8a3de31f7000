import HTTPTransfer
import HTTPTransferCore
import Testing

/// The choice of the next URL, while URLs expire.
@Suite struct ResourceLocationTests {
  private let start = ContinuousClock.now
  /// The same moment on the wall clock.
  private let epoch = Duration.seconds(1_769_860_800)

  private func url(_ text: String) throws -> RemoteURL { try RemoteURL("http://\(text)") }

  /// A link that is valid for `seconds` seconds from the start.
  private func link(_ text: String, for seconds: Int64) throws -> RemoteURL {
    try url("\(text)?expires=\(1_769_860_800 + seconds)&signature=0x1")
  }

  private func answer(
    _ location: inout ResourceLocation, from url: RemoteURL, asked: RemoteURL, after seconds: Int
  ) {
    location.recordAnswer(
      from: url, asked: asked, now: start + .seconds(seconds),
      sinceEpoch: epoch + .seconds(seconds))
  }

  @Test("A listed URL that leads nowhere else is asked itself, and its refusal is final")
  func plain() throws {
    let listed = try url("u:p@h/a")
    var location = ResourceLocation(listed: listed)
    #expect(location.current == listed)
    answer(&location, from: listed, asked: listed, after: 0)
    #expect(location.redirected == nil)
    #expect(location.recordRefusal(of: listed, now: start + .seconds(5)) == .final)
    #expect(location.current == listed)
    #expect(location.takeSignerTurn(now: start) == false)
  }

  @Test("Where redirects have led is asked until it refuses, then the listed URL")
  func redirects() throws {
    let (listed, first, second) = (try url("h/a"), try url("cdn/a"), try url("cdn/b"))
    var location = ResourceLocation(listed: listed)
    answer(&location, from: first, asked: listed, after: 0)
    #expect(location.current == first)
    #expect(location.base == listed)
    #expect(location.recordRefusal(of: first, now: start + .seconds(9)) == .expired)
    #expect(location.current == listed)
    // Later refusals find that a renewal is in flight, or that the URL is known again.
    #expect(location.recordRefusal(of: first, now: start + .seconds(9)) == .expired)
    answer(&location, from: second, asked: listed, after: 10)
    #expect(location.recordRefusal(of: first, now: start + .seconds(10)) == .expired)
    #expect(location.current == second)
    // A delayed answer changes nothing.
    answer(&location, from: first, asked: first, after: 10)
    #expect(location.current == second)
  }

  @Test("A target of redirects is left when it cannot be reached, but not when it is new")
  func unreachableTarget() throws {
    let (listed, target) = (try url("h/a"), try url("cdn/a"))
    var location = ResourceLocation(listed: listed)
    let isMoved = location.recordFailure(of: listed, now: start)
    #expect(!isMoved)
    answer(&location, from: target, asked: listed, after: 0)
    let moved = location.recordFailure(of: target, now: start + .milliseconds(500))
    #expect(!moved && location.current == target)
    let later = location.recordFailure(of: target, now: start + .seconds(2))
    #expect(later && location.current == listed)
    // Other requests that were sent there.
    let other = location.recordFailure(of: target, now: start + .seconds(2))
    #expect(other)
    let own = location.recordFailure(of: listed, now: start + .seconds(2))
    #expect(!own)
  }

  @Test("The signer makes another URL if its last one cannot be reached, every five seconds")
  func unreachableSigned() throws {
    let (listed, signed) = (try url("h/a"), try url("s/a"))
    var location = ResourceLocation(listed: listed, isSigned: true)
    location.recordSigned(signed, now: start, sinceEpoch: epoch)
    let soon = location.recordFailure(of: signed, now: start + .seconds(4))
    #expect(!soon && location.base == signed)
    let late = location.recordFailure(of: signed, now: start + .seconds(5))
    #expect(late && location.base == nil)
    let isAsked = location.takeSignerTurn(now: start + .seconds(5))
    #expect(isAsked)
  }

  @Test("A new URL that has served one and refuses another finds them too many")
  func tooMany() throws {
    let (listed, target) = (try url("h/a"), try url("cdn/a"))
    var location = ResourceLocation(listed: listed)
    answer(&location, from: target, asked: listed, after: 0)
    #expect(location.recordRefusal(of: target, now: start + .milliseconds(500)) == .tooMany)
    #expect(location.current == target)
    #expect(location.recordRefusal(of: target, now: start + .seconds(2)) == .expired)
  }

  @Test("Targets that answer one request each are not remembered")
  func targetsOfOneUse() throws {
    let listed = try url("h/a")
    var location = ResourceLocation(listed: listed)
    let targets = try (0..<3).map { try url("cdn/\($0)") }
    answer(&location, from: targets[0], asked: listed, after: 0)
    // Many requests that are refused at the same time show no more than one.
    #expect(location.recordRefusal(of: targets[0], now: start + .milliseconds(100)) == .tooMany)
    #expect(location.recordRefusal(of: targets[0], now: start + .milliseconds(200)) == .tooMany)
    #expect(location.recordRefusal(of: targets[0], now: start + .seconds(2)) == .expired)
    answer(&location, from: targets[1], asked: listed, after: 2)
    #expect(location.recordRefusal(of: targets[1], now: start + .seconds(2)) == .expired)
    answer(&location, from: targets[2], asked: listed, after: 3)
    #expect(location.current == listed)
    // It may have been an outage.
    answer(&location, from: targets[2], asked: listed, after: 63)
    #expect(location.current == targets[2])
  }

  @Test("A target that has answered its own request is remembered again after it expires")
  func targetsOfManyUses() throws {
    let listed = try url("h/a")
    var location = ResourceLocation(listed: listed)
    for number in 0..<5 {
      let target = try url("cdn/\(number)")
      answer(&location, from: target, asked: listed, after: 10 * number)
      answer(&location, from: target, asked: target, after: 10 * number)
      #expect(location.current == target)
      let refusal = location.recordRefusal(of: target, now: start + .seconds(10 * number + 5))
      #expect(refusal == .expired)
    }
  }

  @Test("The redirects are followed again shortly before their target expires, by one request")
  func renewal() throws {
    let listed = try url("h/a")
    for (life, margin) in [(10, 2.0), (3600, 60.0)] as [(Int64, Double)] {
      var location = ResourceLocation(listed: listed)
      answer(&location, from: try link("cdn/a", for: life), asked: listed, after: 0)
      let due = start + .seconds(Double(life) - margin)
      #expect(location.takeTargetRenewal(now: due - .milliseconds(1)) == false)
      #expect(location.takeTargetRenewal(now: due) == true)
      #expect(location.takeTargetRenewal(now: due) == false)
      #expect(location.redirected != nil)
    }
    // Clocks differ: an expired link is used until it is refused.
    var location = ResourceLocation(listed: listed)
    answer(&location, from: try link("cdn/a", for: -5), asked: listed, after: 0)
    #expect(location.takeTargetRenewal(now: start + .seconds(100_000)) == false)
    #expect(location.redirected != nil)
  }

  @Test("A signer is asked first, before its URL expires, and when that refuses")
  func signer() throws {
    let listed = try url("h/a")
    var location = ResourceLocation(listed: listed, isSigned: true)
    #expect(location.current == nil)
    #expect(location.takeSignerTurn(now: start) == true)
    let first = try link("s/a", for: 10)
    location.recordSigned(first, now: start, sinceEpoch: epoch)
    #expect(location.current == first)
    #expect(location.takeSignerTurn(now: start + .seconds(7)) == false)
    #expect(location.takeSignerTurn(now: start + .seconds(8)) == true)
    #expect(location.takeSignerTurn(now: start + .seconds(8)) == false)
    #expect(location.current == first)
    #expect(location.recordRefusal(of: first, now: start + .seconds(11)) == .expired)
    #expect(location.current == nil)
    #expect(location.takeSignerTurn(now: start + .seconds(11)) == true)
    // Its redirects are cached, and dropped with it.
    let second = try link("s/a", for: 20)
    let target = try url("cdn/a")
    location.recordSigned(second, now: start + .seconds(11), sinceEpoch: epoch + .seconds(11))
    answer(&location, from: target, asked: second, after: 11)
    #expect(location.current == target)
    #expect(location.base == second)
    location.recordSigned(first, now: start, sinceEpoch: epoch)
    #expect(location.redirected == nil)
  }

  @Test("New URLs that are all refused are a refusal")
  func fruitless() throws {
    let listed = try url("h/a")
    var location = ResourceLocation(listed: listed, isSigned: true)
    var refusals: [ResourceLocation.Refusal] = []
    for number in 0..<4 {
      let signed = try url("s/\(number)")
      location.recordSigned(signed, now: start, sinceEpoch: epoch)
      refusals.append(location.recordRefusal(of: signed, now: start))
    }
    #expect(refusals == [.expired, .expired, .expired, .final])
    // The next link could be valid again.
    let signed = try url("s/5")
    location.recordSigned(signed, now: start, sinceEpoch: epoch)
    #expect(location.recordRefusal(of: signed, now: start) == .expired)
  }
}
