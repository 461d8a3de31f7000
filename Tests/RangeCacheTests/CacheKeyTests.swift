import ExtentRecord
import Testing

@testable import RangeCache

@Suite struct CacheKeyTests {
  @Test(
    "A key is the SHA-256 of the text",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ])
  func digest(text: String, hex: String) {
    #expect(CacheKey(text).hex == hex)
  }

  @Test("The names of an entry's directories give its key back; other names give none")
  func names() {
    let key = CacheKey("http://example.org/a")
    #expect(CacheKey(prefix: key.prefixName, rest: key.restName) == key)
    #expect(CacheKey(prefix: key.prefixName, rest: String(key.restName.dropLast())) == nil)
    #expect(CacheKey(prefix: "ZZ", rest: key.restName) == nil)
    #expect(CacheKey(prefix: "", rest: key.hex) == nil)
  }
}
