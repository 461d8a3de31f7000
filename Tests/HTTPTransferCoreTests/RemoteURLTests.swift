import HTTPTransferCore
import Testing

@Suite struct RemoteURLTests {
  @Test func aURLIsSplitAtItsDelimiters() throws {
    let url = try RemoteURL("HTTPS://user:p%40ss@Example.ORG:8443/a/b%20c?k=v&l=/x#part")
    #expect(url.text == "HTTPS://user:p%40ss@Example.ORG:8443/a/b%20c?k=v&l=/x")
    #expect(url.scheme == "https")
    #expect(url.authority == "example.org:8443")
    #expect(url.origin == "https://example.org:8443")
    #expect(url.path == "/a/b%20c")
    #expect(url.query == "k=v&l=/x")
    #expect(url.userInfo == "user:p%40ss")
    #expect(url.withoutUserInfo == "HTTPS://Example.ORG:8443/a/b%20c?k=v&l=/x")
    #expect(url.redacted == "HTTPS://Example.ORG:8443/a/b%20c?…")
    #expect("\(url)" == url.redacted)
  }

  @Test(arguments: [
    ("http://h", "", nil), ("http://h/", "/", nil), ("http://h?q", "", "q"),
    ("http://h/?", "/", ""), ("http://h:/a", "/a", nil), ("http://[::1]:80/a", "/a", nil),
    ("http://[fe80::1%25eth0]/a", "/a", nil), ("http://bücher.example/a", "/a", nil),
    ("http://h_1.x/é", "/é", nil), ("http://a@b@h/x", "/x", nil),
  ])
  func oddButUsableURLsAreTaken(text: String, path: String, query: String?) throws {
    let url = try RemoteURL(text)
    #expect(url.path == path)
    #expect(url.query == query)
  }

  @Test(
    arguments: [
      ("", .missingScheme), ("h/a", .missingScheme), ("//h/a", .missingScheme),
      ("://h/a", .missingScheme), ("http:/h", .missingScheme), ("http:h", .missingScheme),
      // An error does not repeat an impossible scheme, because it may be a secret.
      ("pass@word://h", .missingScheme), ("1http://h", .missingScheme),
      ("\(String(repeating: "x", count: 33))://h", .missingScheme),
      ("ftp://h/a", .unsupportedScheme("ftp")),
      ("s3://b/k", .unsupportedScheme("s3")), ("FILE:///a", .unsupportedScheme("file")),
      ("http://", .missingHost), ("http:///a", .missingHost), ("http://u@/a", .missingHost),
      ("http://:80/a", .missingHost), ("http://?q", .missingHost), ("http://#f", .missingHost),
      ("http://h:0/", .invalidPort), ("http://h:65536/", .invalidPort),
      ("http://h:+80/", .invalidPort), ("http://h:8x/", .invalidPort),
      ("http://h:1:2/", .invalidPort), ("http://::1/", .invalidPort),
      ("http://h<i/", .invalidHost), ("http://h\\i/", .invalidHost), ("http://[]/", .invalidHost),
      ("http://[h]/", .invalidHost), ("http://h]/", .invalidHost),
      ("http://[::1]x/", .invalidHost),
      ("http://h/a b", .forbiddenCharacter), ("http://h/a\tb", .forbiddenCharacter),
      ("http://h/\r\nX: y", .forbiddenCharacter), ("http://h/\0", .forbiddenCharacter),
      (" http://h/", .forbiddenCharacter), ("http://h/\u{7F}", .forbiddenCharacter),
    ] as [(String, RemoteURL.ParseError)])
  func whatIsNoURLOfHTTPIsRefused(text: String, error: RemoteURL.ParseError) {
    #expect(throws: error) { try RemoteURL(text) }
  }

  @Test("The error for an address of object storage or a hub says which URL to use instead")
  func remedies() {
    for (scheme, remedy) in [("s3", "presigned"), ("hf", "download"), ("ftp", "use http")] {
      #expect("\(RemoteURL.ParseError.unsupportedScheme(scheme))".contains(remedy))
    }
  }

  @Test(
    "An origin without its scheme's own port is the same origin",
    arguments: [
      ("http://H.org:80/a", "http://h.org", "h.org"), ("http://h.org/", "http://h.org", "h.org"),
      ("https://h.org:443", "https://h.org", "h.org"),
      ("https://h.org:80/", "https://h.org:80", "h.org"),
      ("http://h.org:8080?x", "http://h.org:8080", "h.org"),
      ("http://u:p@[2001:DB8::80]/a", "http://[2001:db8::80]", "2001:db8::80"),
      ("http://[::80]:80/a", "http://[::80]", "::80"),
      ("http://h.org:/a", "http://h.org", "h.org"),
    ])
  func normalizedOrigin(text: String, origin: String, host: String) throws {
    let url = try RemoteURL(text)
    #expect(url.normalizedOrigin == origin)
    #expect(url.host == host)
  }
}
