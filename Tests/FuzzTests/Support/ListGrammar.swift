import SeededRandom

/// Makes texts like lists, with everything that a list must not contain.
enum ListGrammar {
  /// The text in all places of secrets, which no message may show.
  ///
  /// These are user information, queries and the values of header fields.
  static let secret = "S3CR3T"

  /// A list of a few entries.
  ///
  /// - Parameters:
  ///   - generator: makes all choices.
  ///   - isHarmless: whether it breaks no rule of the format.
  /// - Returns: the bytes of the list.
  static func list(using generator: inout SeededGenerator, isHarmless: Bool = false) -> [UInt8] {
    var text: [UInt8] = []
    let ending = generator.pick(["\n", "\n", "\n", "\r\n"])
    if generator.isOnce(in: 12) { text += "\u{FEFF}".utf8 }
    if generator.isOnce(in: 4) { text += Array("# comment\(ending)".utf8) }
    let entryCount = Int.random(in: 1...6, using: &generator)
    for index in 0..<entryCount {
      text += Array(url(index, using: &generator, isHarmless: isHarmless).utf8)
      if generator.isOnce(in: 6) { text += Array("\thttps://mirror.example/m".utf8) }
      text += Array(ending.utf8)
      if generator.isOnce(in: 2) {
        let option = option(index, using: &generator, isHarmless: isHarmless)
        text += Array(generator.pick(["  ", " ", "\t"]).utf8) + option + Array(ending.utf8)
      }
      if generator.isOnce(in: 10) { text += Array(generator.pick(["", "   ", " # note"]).utf8) }
      if generator.isOnce(in: 10) { text += Array(ending.utf8) }
    }
    if !isHarmless, generator.isOnce(in: 200) {
      // A line just under, at or over the limit.
      let count = 64 * 1024 + Int.random(in: -30...30, using: &generator)
      text += Array("http://h/long?".utf8)
      text += [UInt8](repeating: UInt8(ascii: "x"), count: count - 14) + Array(ending.utf8)
    }
    return text
  }

  private static func url(
    _ index: Int, using generator: inout SeededGenerator, isHarmless: Bool
  ) -> String {
    let usual = [
      "http://example.org/d/file-\(index).bin",
      "https://user:\(secret)@example.org:8443/a%20b-\(index)?token=\(secret)",
      "http://[::1]:80/x-\(index)", "HTTP://H/%C3%A9-\(index)#fragment",
      "http://h/%2e%2e%2f-\(index)",
    ]
    return isHarmless || !generator.isOnce(in: 8)
      ? generator.pick(usual) : generator.pick(hostileURLs)
  }

  private static func option(
    _ index: Int, using generator: inout SeededGenerator, isHarmless: Bool
  ) -> [UInt8] {
    let usual = [
      "out=o-\(index).bin", "out=dir/o-\(index)", "dir=d\(index)", "header=Cookie: \(secret)",
      "header=Range: \(secret)", "user-agent=\(secret)", "referer=*", "split=5",
      "checksum=md5=d41d8cd98f00b204e9800998ecf8427e", "unknown-option=\(secret)",
    ]
    if isHarmless || !generator.isOnce(in: 5) { return Array(generator.pick(usual).utf8) }
    var bytes = Array(generator.pick(hostileOptions).utf8)
    if generator.isOnce(in: 6) { bytes.append(generator.pick([0xFF, 0xC3, 0x80, 0xED])) }
    return bytes
  }

  /// Invalid URLs, and URLs that give a file a forbidden name.
  private static let hostileURLs = [
    "http://h/", "http://h/..", "http://h/%2e%2e", "http://h/a/../b", "http://h/.status",
    "http://h/.status.json?q", "http://h/a%00b", "http://h/a%0Ab", "http://h/a%2Fb",
    "http://h/%FF%FE", "http://h/a%C2%85b", "http://h/same", "http://h/same",
    "http://h/e%CC%81", "http://h/%C3%A9", "http:// h/x", "ftp://h/x", "file:///etc/passwd",
    "javascript:alert(1)", "http://\(secret):\(secret)@/x?\(secret)", "http://h:0/x",
    "http://h:65536/x", "http://h:99999999999999999999/x", "http://[::1/x", "http://]/x",
    "http://h/" + String(repeating: "n", count: 255),
    "http://h/" + String(repeating: "n", count: 256),
    "http://h/" + String(repeating: "é", count: 128),
    "http://h/" + String(repeating: "d/", count: 2100) + "x", "http://h/Name", "http://h/name",
    "//h/x", "h/x", "http:///x", "http://h", "http://h?x",
  ]

  /// Options that leave the mount, inject a field or break a rule of names.
  private static let hostileOptions = [
    "out=../up", "out=/etc/passwd", "out=a/../../b", "out=.", "out=..", "out=a//b", "out=a/",
    "out=", "out=.status", "out=.status/x", "out=.status.json", "out=.metrics", "out=.control/a",
    "dir=/abs", "dir=..", "dir=../x", "dir=.status", "out=same", "out=same/child", "out=same/",
    "out=e\u{301}", "out=é", "out=a\u{0}b", "out=a\u{1B}[2Jb", "out=a\u{7F}b", "out=a\u{85}b",
    "out=a\tb", "out=\u{202E}gnp.exe", "header=A: b\r\nInjected: \(secret)",
    "header=A: b\rInjected: \(secret)", "header=A\u{0}: \(secret)", "header=: \(secret)",
    "header=A B: \(secret)", "header=\(secret)", "header=A: \u{1}\(secret)",
    "user-agent=a\r\nHost: \(secret)", "referer=\u{0}\(secret)", "checksum=md5=\(secret)",
    "checksum=\(secret)", "checksum=crc=00", "no equals sign", "=value", "out",
    "out=" + String(repeating: "l", count: 255), "out=" + String(repeating: "l", count: 256),
    "dir=" + String(repeating: "p/", count: 2047) + "x", "http://h/indented?\(secret)",
  ]
}
