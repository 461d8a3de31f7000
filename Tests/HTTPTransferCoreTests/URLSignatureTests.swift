import HTTPTransferCore
import Testing

/// The parts of a URL that form a signature, which changes while the file does not.
@Suite struct URLSignatureTests {
  /// 2026-01-31 12:00:00 UTC.
  private static let noon: Int64 = 1_769_860_800

  private static let amazon =
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F20260131%2Feu%2Fs3%2Faws4_request"
    + "&X-Amz-Date=20260131T120000Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host"

  /// Queries, their rest without the signature, and the time at which they expire.
  private static let signed: [(query: String, rest: String, expiry: Int64?)] = [
    (amazon + "&X-Amz-Signature=ab12", "", noon + 3600),
    (
      "versionId=7&" + amazon + "&X-Amz-Security-Token=t%2F&X-Amz-Signature=ab12&partNumber=1",
      "?versionId=7&partNumber=1", noon + 3600
    ),
    ("x-id=GetObject&" + amazon.lowercased() + "&x-amz-signature=ab12", "?x-id=GetObject", nil),
    (
      "X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=a%40b&X-Goog-Date=20260131T120000Z"
        + "&X-Goog-Expires=60&X-Goog-SignedHeaders=host&X-Goog-Signature=ff&generation=12",
      "?generation=12", noon + 60
    ),
    (
      "x-oss-signature-version=OSS4-HMAC-SHA256&x-oss-credential=c&x-oss-date=20260131T120000Z"
        + "&x-oss-expires=1&x-oss-signature=a&x-oss-process=image%2Fresize",
      "?x-oss-process=image%2Fresize", noon + 1
    ),
    ("AWSAccessKeyId=A&Expires=1769860800&Signature=b%3D", "", noon),
    ("a=1&GoogleAccessId=x%40y&Expires=1769860800&Signature=b", "?a=1", noon),
    ("Expires=1769860800&Signature=b~&Key-Pair-Id=K", "", noon),
    ("size=2&Policy=eyJ_&Signature=b&Key-Pair-Id=K", "?size=2", nil),
    ("length=5&expires=1769860800&signature=0x1", "?length=5", noon),
    ("md5=_e4Nc3iduzkWRm01TBBNYw&expires=1769860800", "", noon),
    (
      "sv=2024-11-04&st=2026-01-31T11%3A00%3A00Z&se=2026-01-31T12%3A00%3A00Z&sr=b&sp=r&sig=a%2Bb%3D"
        + "&snapshot=1", "?snapshot=1", noon
    ),
    ("sp=r&se=2026-01-31T12:00:00Z&spr=https&sv=2024-11-04&sr=b&sig=a", "", noon),
    ("se=2026-01-31T12%3a00Z&sig=a&sv=1", "", noon),
    ("se=2026-01-31&sig=a&sv=1&rscd=x", "?rscd=x", noon - 43_200),
    ("si=policy&sv=2024-11-04&sr=c&sig=a", "", nil),
    (
      "skoid=1&sktid=2&skt=3&ske=4&sks=b&skv=5&sip=1.2.3.4&se=2026-01-31T12:00:00Z&sig=a&x=1",
      "?x=1", noon
    ),
  ]

  @Test("A signature is left out, and tells its end", arguments: signed)
  func signatures(row: (query: String, rest: String, expiry: Int64?)) throws {
    let url = try RemoteURL("https://u:p@h.example:8443/a/b%20c?\(row.query)")
    #expect(url.withoutSignature == "https://h.example:8443/a/b%20c" + row.rest)
    #expect(url.signatureExpiry == row.expiry)
  }

  @Test(
    "What is no signature is kept as it is",
    arguments: [
      "", "Expires=1769860800", "st=1&se=2", "sig=1", "sig=1&sv=2", "Signature=a",
      "Signature=a&Expires=never", "Signature=a&Expires=12", "md5=a", "md5=abc&expires=x",
      "X-Amz-Expires=5", "X-Amz-Signature=a", "Signature=&Expires=1769860800", "a&b&&c=",
      "Policy=p&Key-Pair-Id=k", "design=1&signature", "Signature=a&Expires=99999999999999999999",
    ])
  func others(query: String) throws {
    let url = try RemoteURL("http://u@h/a?\(query)")
    #expect(url.withoutSignature == url.withoutUserInfo)
    #expect(url.signatureExpiry == nil)
  }

  @Test("A URL without a query is as it is")
  func plain() throws {
    #expect(try RemoteURL("http://h/signature").withoutSignature == "http://h/signature")
  }

  @Test(
    "A time that there is not is none",
    arguments: [
      "X-Amz-Date=20261331T120000Z", "X-Amz-Date=2026", "X-Amz-Date=20260131T120000",
      "X-Amz-Date=", "X-Amz-Date=20260131T99", "X-Amz-Date=\u{e9}\u{e9}\u{e9}\u{e9}",
    ])
  func badTimes(date: String) throws {
    let url = try RemoteURL(
      "http://h/a?\(date)&X-Amz-Expires=5&X-Amz-Credential=c&X-Amz-Signature=a")
    #expect(url.signatureExpiry == nil)
    #expect(url.withoutSignature == "http://h/a")
  }
}
