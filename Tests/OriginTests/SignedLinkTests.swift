import OriginContent
import Testing

@Suite struct SignedLinkTests {
  private let link = SignedLink(path: "/data/a.bin", expires: 1000)

  private func permits(
    _ query: [String: String], path: String = "/data/a.bin", now: Int64 = 999
  ) -> Bool {
    SignedLink.permits(path: path, query: query, now: now)
  }

  @Test("A link is good for its path until it expires, and only with its signature")
  func permission() {
    let good = ["expires": "1000", "signature": link.signature]
    #expect(permits(good))
    #expect(!permits(good, now: 1000))
    #expect(!permits(good, path: "/data/b.bin"))
    #expect(!permits(["expires": "1001", "signature": link.signature]))
    #expect(!permits(["expires": "1000"]))
    #expect(!permits(["expires": "x", "signature": link.signature]))
    #expect(!permits([:]))
  }

  @Test("/signed/NAME leads to /data/NAME with the same parameters and a signature")
  func location() throws {
    let request = try RequestHead(
      target: "/signed/a.bin?length=5&lifetime=7&rate=10m&expires=1&signature=x")
    let location = try #require(SignedLink.location(for: request, lifetime: 7, now: 993))
    #expect(
      location
        == "/data/a.bin?length=5&rate=10m&require-signature=yes&expires=1000&signature="
        + link.signature)
    let plain = try RequestHead(target: "/signed/d/a.bin")
    #expect(
      SignedLink.location(for: plain, lifetime: 1, now: 0)?.hasPrefix("/data/d/a.bin?require")
        == true)
    let other = try RequestHead(target: "/data/a.bin")
    #expect(SignedLink.location(for: other, lifetime: 1, now: 0) == nil)
  }

  @Test("A resource that wants a signature refuses a request without one")
  func plan() throws {
    let parameters = try ResponseParameters(values: ["require-signature": "yes"])
    for (target, status) in [
      ("/data/a.bin?require-signature=yes", 403),
      ("/data/a.bin?expires=1000&signature=\(link.signature)", 200),
    ] {
      let maker = PlanMaker(
        request: try RequestHead(target: target), parameters: parameters,
        resource: .generated(length: 5, seed: 1), context: PlanMaker.Context(now: 999))
      #expect(maker.plan().head?.status == status)
    }
  }
}
