import HTTPTransferCore
import Testing

@Suite struct NetrcTests {
  @Test func tenThousandMachinesAreReadAndNoMore() throws {
    func text(_ count: Int) -> [UInt8] {
      Array((0..<count).map { "machine h\($0) login a password p\($0)\n" }.joined().utf8)
    }
    let netrc = try Netrc(text(Netrc.maximumEntryCount))
    #expect(netrc.credentials(forHost: "h9999")?.password == "p9999")
    #expect {
      try Netrc(text(Netrc.maximumEntryCount + 1))
    } throws: { error in
      "\(error)" == "line 10001: more than 10000 machines"
    }
  }

  private static let text = """
    # who is who
    machine a.example login ann password "p w\\"#1"
    machine b.example
      login bob
      password #not-a-comment
    machine b.example login eve password 3
    macdef init
    machine c.example login not password read

    machine d.example account x login dan password d
    default login any password body
    """

  @Test(
    "The first entry of a host, else the default, has its credentials",
    arguments: [
      ("a.example", nil, "ann", "p w\"#1"), ("A.Example", nil, "ann", "p w\"#1"),
      ("b.example", nil, "bob", "#not-a-comment"), ("b.example", "eve", "eve", "3"),
      ("c.example", nil, "any", "body"), ("d.example", nil, "dan", "d"),
      ("a.example.org", nil, "any", "body"),
    ] as [(String, String?, String, String)])
  func lookUp(host: String, user: String?, expectedUser: String, password: String) throws {
    let found = try Netrc(Array(Self.text.utf8)).credentials(forHost: host, user: user)
    #expect(found == Netrc.Credentials(user: expectedUser, password: password))
  }

  @Test("Nobody else's password is taken for a user or a host that the file does not have")
  func strangers() throws {
    let netrc = try Netrc(Array("machine a login ann password x\r\nmachine b".utf8))
    #expect(netrc.credentials(forHost: "c") == nil)
    #expect(netrc.credentials(forHost: "a", user: "bob") == nil)
    #expect(netrc.credentials(forHost: "b") == nil)
    #expect(netrc.credentials(forHost: "a")?.password == "x")
  }

  @Test(
    "What is malformed is named by its line, without a word of it",
    arguments: [
      ("machine a login ann password x canary", 1), ("\nlogin canary", 2), ("machine", 1),
      ("machine a\nlogin \"canary", 2), ("canary", 1),
    ])
  func malformed(text: String, line: Int) {
    let error = #expect(throws: Netrc.ParseError.self) { try Netrc(Array(text.utf8)) }
    #expect(error?.line == line)
    #expect(error.map { !"\($0)".contains("canary") } == true)
  }

  @Test("Credentials in a URL are encoded, and replace those that it has")
  func userInfo() throws {
    let url = try RemoteURL("https://old@h.example:8443/a?b")
    let other = try #require(url.withUserInfo(user: "a@b", password: "p:/ü "))
    #expect(other.text == "https://a%40b:p%3A%2F%C3%BC%20@h.example:8443/a?b")
    #expect(other.origin == url.origin)
    #expect(other.withoutUserInfo == url.withoutUserInfo)
  }
}
