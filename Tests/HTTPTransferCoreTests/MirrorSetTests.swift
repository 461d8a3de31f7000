import HTTPTransferCore
import Testing

@Suite struct MirrorSetTests {
  private let start = ContinuousClock.now

  private func mirrors(_ count: Int = 3, trust: MirrorSet.Trust = .validators) throws -> MirrorSet {
    let policy = RetryPolicy(
      base: .seconds(2), ceiling: .seconds(60), retryAfterCeiling: .seconds(60))
    return MirrorSet(
      urls: try (0..<count).map { try RemoteURL("http://m\($0)/f") }, trust: trust, rests: policy)
  }

  private static func version(
    _ tag: String? = nil, date: String? = nil, strength: ContentVersion.DateStrength = .strong,
    length: Int64? = 100
  ) -> ContentVersion {
    var version = ContentVersion(
      entityTag: tag.flatMap(EntityTag.init(field:)), lastModified: date, completeLength: length)
    version.dateStrength = date == nil ? .undated : strength
    return version
  }

  // MARK: Verification

  @Test("The server that an earlier mount had the version from is judged as one that is alone")
  func recalledDefiner() throws {
    let weak = Self.version("W/a", date: "d")
    var mirrors = try mirrors()
    let before = mirrors.judge(weak, from: 0, pinned: weak, now: start)
    #expect(before != .ordinary)
    mirrors = try self.mirrors()
    mirrors.recalled(weak, of: 1)
    #expect(mirrors.reference == 1)
    let own = mirrors.judge(weak, from: 1, pinned: weak, now: start)
    let others = mirrors.judge(weak, from: 0, pinned: weak, now: start)
    #expect(own == .ordinary && others != .ordinary)
    // The mirror that has defined the version in this mount stays.
    mirrors.recalled(weak, of: 0)
    #expect(mirrors.reference == 1)
  }

  struct Row: Sendable, CustomTestStringConvertible {
    let pinned: ContentVersion
    let answer: ContentVersion
    let isSame: Bool
    var testDescription: String { "\(pinned) / \(answer)" }
  }

  @Test(
    "Another server's answer is the version only where strong validators and lengths agree",
    arguments: [
      Row(pinned: version("a"), answer: version("a"), isSame: true),
      Row(pinned: version("a", date: "d"), answer: version("a", date: "e"), isSame: true),
      Row(pinned: version("a"), answer: version("b"), isSame: false),
      // Copies look like this, but so do other files of equal length that were created together.
      Row(pinned: version("a", date: "d"), answer: version("b", date: "d"), isSame: false),
      Row(pinned: version("W/a", date: "d"), answer: version("W/a", date: "d"), isSame: false),
      Row(pinned: version(date: "d"), answer: version(date: "d"), isSame: true),
      Row(pinned: version(date: "d"), answer: version(date: "e"), isSame: false),
      Row(
        pinned: version(date: "d"), answer: version(date: "d", strength: .weak), isSame: false),
      Row(
        pinned: version(date: "d"), answer: version(date: "d", strength: .undated), isSame: false),
      Row(pinned: version("a", date: "d"), answer: version(date: "d"), isSame: false),
      Row(pinned: version(), answer: version(), isSame: false),
      Row(pinned: version("a"), answer: version("a", length: 99), isSame: false),
      Row(pinned: version("a"), answer: version("a", length: nil), isSame: false),
    ])
  func provenByValidators(row: Row) throws {
    var mirrors = try mirrors()
    mirrors.defined(row.pinned, by: 0)
    let judgement = mirrors.judge(row.answer, from: 1, pinned: row.pinned, now: start)
    #expect((judgement == .same) == row.isSame)
    if case .contradicts = judgement {
      #expect(!row.isSame)
    } else {
      #expect(mirrors.mirrors[1].standing == .verified)
    }
  }

  @Test("The server that described the version is judged by the rules for one server")
  func ordinary() throws {
    var mirrors = try mirrors()
    mirrors.defined(Self.version("W/a"), by: 1)
    let pinned = Self.version("W/a")
    #expect(mirrors.judge(pinned, from: 1, pinned: pinned, now: start) == .ordinary)
    var single = try self.mirrors(1)
    #expect(single.judge(pinned, from: 0, pinned: pinned, now: start) == .ordinary)
  }

  @Test(
    "With hashes that are compared before use an equal length is enough, and nothing else counts")
  func provenByPieces() throws {
    var mirrors = try mirrors(trust: .hashesBeforeUse)
    let pinned = Self.version("a")
    mirrors.defined(pinned, by: 0)
    #expect(mirrors.judge(Self.version("b"), from: 1, pinned: pinned, now: start) == .same)
    #expect(mirrors.judge(Self.version("c"), from: 0, pinned: pinned, now: start) == .same)
    let unknown = Self.version("a", length: nil)
    #expect(mirrors.judge(unknown, from: 2, pinned: unknown, now: start) != .same)
    let short = mirrors.judge(Self.version("a", length: 99), from: 2, pinned: pinned, now: start)
    #expect(short == .contradicts(reason: "its file has 99 bytes, not 100"))
  }

  @Test("With a checksum, a server of which only the length agrees is used for want of better")
  func similar() throws {
    var mirrors = try mirrors(trust: .hashesAfterUse)
    let pinned = Self.version("a")
    mirrors.defined(pinned, by: 0)
    #expect(mirrors.judge(Self.version("b"), from: 1, pinned: pinned, now: start) == .declined)
    #expect(mirrors.choose(isUrgent: true, now: start) == 0)
    mirrors.failed(0, reason: "gone", now: start)
    _ = mirrors.refuse(2, reason: "other")
    #expect(mirrors.choose(isUrgent: true, now: start) == 1)
    #expect(mirrors.judge(Self.version("b"), from: 1, pinned: pinned, now: start) == .unproven)
    // The file has changed, and the mirror's earlier file was never shown to be the right one.
    let changed = mirrors.judge(Self.version("c"), from: 1, pinned: pinned, now: start)
    #expect(changed == .contradicts(reason: "its file has changed"))
  }

  // MARK: Selection

  @Test("The first server is asked about the file, then the next that has not failed")
  func contacts() throws {
    var mirrors = try mirrors()
    #expect(mirrors.contact(except: [], now: start) == 0)
    mirrors.failed(0, reason: "refused", now: start)
    #expect(mirrors.contact(except: [0], now: start) == 1)
    #expect(mirrors.contact(except: [], now: start) == 1)
    #expect(mirrors.refuse(1, reason: "other bytes") == true)
    #expect(mirrors.refuse(1, reason: "again") == false)
    mirrors.failed(2, reason: "refused", now: start + .seconds(1))
    // All mirrors rest: the one whose rest ends first is used.
    #expect(mirrors.contact(except: [], now: start + .seconds(1)) == 0)
    #expect(mirrors.contact(except: [0], now: start + .seconds(1)) == 2)
    #expect(mirrors.contact(except: [0, 2], now: start) == nil)
    #expect(mirrors.contact(except: [], now: start + .seconds(30)) == 0)
    #expect(mirrors.rest(of: 0, now: start + .milliseconds(500)) == .milliseconds(1500))
    #expect(mirrors.rest(of: 0, now: start + .seconds(2)) == .zero)
  }

  @Test("A silent server is avoided while another one is ready, and a failed one is no better")
  func silence() throws {
    var mirrors = try mirrors(3)
    for index in 0..<3 { mirrors.recordAgreement(Self.version("a"), by: index) }
    _ = mirrors.refuse(2, reason: "other bytes")
    #expect(mirrors.choose(isUrgent: true, avoiding: 0, now: start) == 1)
    #expect(mirrors.contact(avoiding: 0, now: start) == 1)
    mirrors.failed(1, reason: "refused", now: start)
    #expect(mirrors.choose(isUrgent: true, avoiding: 0, now: start) == 0)
    #expect(mirrors.contact(avoiding: 0, now: start) == 0)
    // The only server that may be asked at all is not avoided.
    mirrors.exclusive = 0
    #expect(mirrors.choose(isUrgent: true, avoiding: 0, now: start + .seconds(9)) == 0)
    mirrors.exclusive = nil
    #expect(mirrors.choose(isUrgent: true, except: [0], avoiding: 1, now: start) == 1)
    #expect(mirrors.choose(isUrgent: true, avoiding: 0, now: start + .seconds(9)) == 1)
  }

  @Test("The same URL twice is one server")
  func duplicates() throws {
    let url = try RemoteURL("http://h/x")
    #expect(MirrorSet(urls: [url, url], trust: .validators, rests: RetryPolicy()).count == 1)
  }

  @Test("A read that waits is never the first to try a server, read-ahead is")
  func tryingOut() throws {
    var mirrors = try mirrors(2)
    mirrors.defined(Self.version("a"), by: 0)
    mirrors.began(0)
    #expect(mirrors.choose(isUrgent: true, now: start) == 0)
    #expect(mirrors.choose(isUrgent: false, now: start) == 1)
    mirrors.failed(0, reason: "silent", now: start)
    #expect(mirrors.choose(isUrgent: true, now: start) == 1)
  }

  @Test("One that has not shown yet that it has the same bytes gets one request to do so")
  func unproven() throws {
    var mirrors = try mirrors(2)
    let version = Self.version("a")
    mirrors.defined(version, by: 0)
    for _ in 0..<7 { mirrors.began(0) }
    #expect(mirrors.choose(isUrgent: false, now: start) == 1)
    mirrors.began(1)
    #expect(mirrors.choose(isUrgent: false, now: start) == 0)
    #expect(mirrors.judge(version, from: 1, pinned: version, now: start) == .same)
    #expect(mirrors.choose(isUrgent: false, now: start) == 1)
    // The only remaining mirror is used.
    mirrors.ended(1)
    mirrors.defined(version, by: 0)
    mirrors.began(1)
    mirrors.failed(0, reason: "silent", now: start)
    #expect(mirrors.choose(isUrgent: false, now: start) == 1)
  }

  @Test("One that refuses more requests gets no more than it was answering")
  func limits() throws {
    var mirrors = try mirrors(2)
    mirrors.recordAgreement(Self.version("a"), by: 0)
    mirrors.recordAgreement(Self.version("a"), by: 1)
    mirrors.measured(0, bytesPerSecond: 9e6)
    mirrors.measured(1, bytesPerSecond: 1)
    mirrors.began(0)
    mirrors.began(0)
    mirrors.limitFlights(0)
    #expect(mirrors.choose(isUrgent: false, now: start) == 1)
    mirrors.ended(0)
    #expect(mirrors.choose(isUrgent: false, now: start) == 0)
  }

  @Test("The one that is asked alone is, until it rests or is refused")
  func exclusive() throws {
    var mirrors = try mirrors(2)
    mirrors.recordAgreement(Self.version("a"), by: 0)
    mirrors.recordAgreement(Self.version("a"), by: 1)
    mirrors.exclusive = 1
    for _ in 0..<9 { mirrors.began(1) }
    #expect(mirrors.choose(isUrgent: true, now: start) == 1)
    mirrors.failed(1, reason: "silent", now: start)
    #expect(mirrors.choose(isUrgent: true, now: start) == 0)
    #expect(mirrors.choose(isUrgent: true, now: start + .seconds(2)) == 1)
    let isNews = mirrors.refuse(1, reason: "wrong")
    #expect(isNews && mirrors.exclusive == nil)
    mirrors.exclusive = 0
    mirrors.exclude(0, reason: "wrong")
    #expect(mirrors.exclusive == nil)
    #expect(mirrors.choose(isUrgent: true, now: start) == nil)
  }

  @Test("Who is excluded stays so; who was refused may have the next version")
  func exclusion() throws {
    var mirrors = try mirrors(3)
    mirrors.exclude(0, reason: "HTTP 404")
    _ = mirrors.refuse(1, reason: "other")
    #expect(mirrors.contact(now: start) == 2)
    #expect(!mirrors.hasTrusted(besides: 2))
    #expect(mirrors.refusals(besides: 2) == "http://m0/f (HTTP 404), http://m1/f (other)")
    mirrors.exclude(2, reason: "gone")
    #expect(mirrors.contact(now: start) == nil)
    #expect(mirrors.hasOtherVersions)
    mirrors.forgetVersion()
    #expect(!mirrors.hasOtherVersions)
    #expect(mirrors.contact(now: start) == 1)
    mirrors.readmit(0)
    #expect(mirrors.trusted == [1])
  }

  @Test("What is under way when a server is refused does not bring it back")
  func lateAnswer() throws {
    var mirrors = try mirrors(2, trust: .hashesBeforeUse)
    let version = Self.version("a")
    mirrors.defined(version, by: 0)
    _ = mirrors.refuse(1, reason: "wrong bytes")
    _ = mirrors.judge(version, from: 1, pinned: version, now: start)
    #expect(mirrors.trusted == [0])
  }

  @Test("Requests are spread so that those of the faster server are more")
  func spreading() throws {
    var mirrors = try mirrors(2)
    let version = Self.version("a")
    mirrors.defined(version, by: 0)
    _ = mirrors.judge(version, from: 1, pinned: version, now: start)
    for (index, rate) in [(0, 1e6), (1, 3e6)] {
      mirrors.began(index)
      mirrors.ended(index, bytesPerSecond: rate)
    }
    var counts = [0, 0]
    for _ in 0..<8 {
      let index = try #require(mirrors.choose(isUrgent: true, now: start))
      counts[index] += 1
      mirrors.began(index)
    }
    #expect(counts == [2, 6])
  }

  @Test("A server rests longer after each failure in a row, and not at all after an answer")
  func rests() throws {
    var mirrors = try mirrors(1)
    var now = start
    var rests: [Duration] = []
    for _ in 0..<8 {
      mirrors.failed(0, reason: "x", now: now)
      let until = try #require(mirrors.mirrors[0].restsUntil)
      rests.append(until - now)
      now = until
    }
    #expect(rests == [2, 4, 8, 16, 32, 60, 60, 60].map { .seconds($0) })
    // Requests that fail together count as one failure.
    mirrors.answered(0)
    let failures = [0, 1, 1].map { mirrors.failed(0, reason: "x", now: now + .seconds($0)) }
    #expect(failures == [1, 1, 1])
    // The rest ends, so failures of later requests count again.
    #expect(mirrors.rest(of: 0, now: now) == .seconds(2))
    #expect(mirrors.failed(0, reason: "x", now: now + .seconds(2)) == 2)
    mirrors.failed(0, reason: "x", retryAfter: .seconds(20), now: now + .seconds(2))
    #expect(mirrors.rest(of: 0, now: now + .seconds(2)) == .seconds(20))
    mirrors.failed(0, reason: "HTTP 404", isDenial: true, now: now + .seconds(2))
    #expect(mirrors.rest(of: 0, now: now + .seconds(2)) == .seconds(60))
    mirrors.answered(0)
    #expect(mirrors.mirrors[0].restsUntil == nil)
    mirrors.failed(0, reason: "x", retryAfter: .seconds(30), now: now)
    #expect(mirrors.mirrors[0].restsUntil == now + .seconds(30))
  }

  @Test("A new version forgets what servers have shown of the old one, not that they are silent")
  func newVersion() throws {
    var mirrors = try mirrors(2)
    mirrors.defined(Self.version("a"), by: 0)
    _ = mirrors.refuse(1, reason: "other")
    mirrors.failed(0, reason: "x", now: start)
    mirrors.defined(Self.version("b"), by: 0)
    #expect(mirrors.mirrors[1].standing == .untested)
    #expect(mirrors.mirrors[0].standing == .verified)
    #expect(mirrors.contact(except: [], now: start) == 1)
  }
}
