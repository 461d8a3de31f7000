import HTTPTransferCore
import HTTPTypes
import RemoteFiles
import Testing

@Suite struct FileSourceTests {
  private func keyText(_ url: String, _ fields: HTTPFields = HTTPFields()) throws -> String {
    FileSource(path: "a", url: try RemoteURL(url), fields: fields).cacheKeyText
  }

  @Test(
    "Credentials do not name another entry",
    arguments: [
      ("http://user:pw@h/a", [:]), ("http://other@h/a", [:]),
      ("http://h/a", [.authorization: "Bearer x"]), ("http://h/a", [.cookie: "id=x"]),
      ("http://h/a", [.proxyAuthorization: "x"]), ("http://h/a", [.userAgent: "x"]),
      ("http://h/a", [.referer: "x"]),
    ] as [(String, HTTPFields)])
  func credentials(url: String, fields: HTTPFields) throws {
    #expect(try keyText(url, fields) == keyText("http://h/a"))
  }

  @Test("What may select another representation names another entry")
  func selectingFields() throws {
    let texts = [
      try keyText("http://h/a"), try keyText("http://h/b"), try keyText("https://h/a"),
      try keyText("http://h:81/a"), try keyText("http://h/a?v=1"), try keyText("http://h/a?v=2"),
      try keyText("http://h/a", [.accept: "text/plain"]),
      try keyText("http://h/a", [.accept: "text/html"]),
      try keyText("http://h/a", [.acceptLanguage: "text/html"]),
    ]
    #expect(Set(texts).count == texts.count)
  }

  @Test("The path in the mount does not name the entry: two names of one URL share it")
  func path() throws {
    let url = try RemoteURL("http://h/a")
    let texts = ["x", "y/z"].map { FileSource(path: $0, url: url).cacheKeyText }
    #expect(texts[0] == texts[1])
  }

  @Test("A file whose list says another rate is the same file; one of other mirrors is not")
  func rate() throws {
    let url = try RemoteURL("http://h/a")
    func source(_ details: SourceDetails?) -> FileSource {
      FileSource(path: "a", url: url, details: details)
    }
    let mirrored = SourceDetails(mirrors: [url], rateLimit: 1)
    #expect(SourceDetails() == nil)
    for (one, other, isSame) in [
      (nil, SourceDetails(rateLimit: 1), true), (SourceDetails(rateLimit: 2), nil, true),
      (SourceDetails(rateLimit: 0), SourceDetails(rateLimit: 1), true),
      (mirrored, SourceDetails(mirrors: [url]), true), (mirrored, nil, false),
      (SourceDetails(rateLimit: 1), mirrored, false),
    ] {
      #expect(source(one) != source(other))
      #expect(source(one).differsInAccessOnly(from: source(other)) == isSame)
    }
  }

  @Test("A field's case does not matter")
  func fieldCase() throws {
    let upper = try #require(HTTPField.Name("X-TENANT"))
    let lower = try #require(HTTPField.Name("x-tenant"))
    #expect(try keyText("http://h/a", [upper: "1"]) == keyText("http://h/a", [lower: "1"]))
  }
}
