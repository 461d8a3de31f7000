import HTTPTransferCore
import Testing

@Suite struct TextDecodingTests {
  @Test(
    "A body is read in the charset of its Content-Type",
    arguments: [
      ("text/plain; charset=utf-8", [0x61, 0xC3, 0xA9], "aé"),
      ("text/plain;charset=UTF-8", [0xE2, 0x82, 0xAC], "€"),
      ("text/plain; charset=us-ascii", [0x61, 0x7F], "a\u{7F}"),
      ("text/plain; charset=iso-8859-1", [0x61, 0xE9, 0x80], "aé\u{80}"),
      ("text/plain; charset=windows-1252", [0x80, 0x9F, 0xE9, 0x81], "€Ÿé\u{81}"),
      ("text/plain; charset=utf-16le", [0x61, 0, 0xAC, 0x20], "a€"),
      ("text/plain; charset=utf-16be", [0, 0x61, 0x20, 0xAC], "a€"),
      ("text/plain; charset=utf-16le", [0x3D, 0xD8, 0x00, 0xDE], "😀"),
      // Without a byte order mark, UTF-16 is big-endian.
      ("text/plain; charset=utf-16", [0, 0x61], "a"),
    ] as [(String, [UInt8], String)])
  func charsets(contentType: String, bytes: [UInt8], expected: String) {
    #expect(TextDecoding.text(of: bytes, contentType: contentType) == expected)
  }

  @Test(
    "A body without a usable charset is read as ISO-8859-1",
    arguments: [
      nil, "", "text/plain", "text/plain; charset=", "text/plain; charset=koi8-r",
      "text/plain; chars=utf-8", "charset=utf-8", "text/plain; format=\"a;charset=utf-8\"",
    ])
  func fallback(contentType: String?) {
    #expect(TextDecoding.text(of: [0xC3, 0xA9], contentType: contentType) == "Ã©")
  }

  @Test(
    "A byte order mark decides before the field does and is not part of the text",
    arguments: [
      ([0xEF, 0xBB, 0xBF, 0xC3, 0xA9], "é"),
      ([0xFF, 0xFE, 0xE9, 0x00], "é"),
      ([0xFE, 0xFF, 0x00, 0xE9], "é"),
      ([0xEF, 0xBB, 0xBF], ""),
      ([0xFF, 0xFE], ""),
    ] as [([UInt8], String)],
    [nil, "text/plain; charset=iso-8859-1", "text/plain; charset=utf-16le"])
  func byteOrderMarks(text: ([UInt8], String), contentType: String?) {
    #expect(TextDecoding.text(of: text.0, contentType: contentType) == text.1)
  }

  @Test("A text of any length is decoded as a short one is, wherever it is cut")
  func longTexts() {
    let character = "e\u{301}€😀\u{FEFF}"
    for lead in 0..<8 {
      let text = String(repeating: "x", count: lead) + String(repeating: character, count: 8_000)
      #expect(TextDecoding.text(of: Array(text.utf8), charset: .utf8) == text)
      let units = Array(text.utf16)
      let little = units.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
      #expect(TextDecoding.text(of: little, charset: .utf16LittleEndian) == text)
      let big = units.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
      #expect(TextDecoding.text(of: big, charset: .utf16BigEndian) == text)
      // Malformed text: cut characters, stray continuation bytes, lone surrogates.
      let broken = Array(text.utf8).enumerated().filter { $0.offset % 7 != lead % 7 }.map(\.element)
      let repaired = String(decoding: broken, as: UTF8.self)
      #expect(
        TextDecoding.text(of: broken, charset: .utf8).utf8.elementsEqual(repaired.utf8))
      let halves = units.enumerated().filter { $0.offset % 5 != lead % 5 }.map(\.element)
      let bytes = halves.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
      #expect(
        TextDecoding.text(of: bytes, charset: .utf16BigEndian).utf8
          .elementsEqual(String(decoding: halves, as: UTF16.self).utf8))
    }
    let latin = [UInt8](repeating: 0xE9, count: 200_000)
    #expect(
      TextDecoding.text(of: latin, charset: .latin1) == String(repeating: "é", count: 200_000))
  }

  @Test(
    "What a charset does not have becomes U+FFFD",
    arguments: [
      ("utf-8", [0x61, 0xC3], "a\u{FFFD}"),
      ("us-ascii", [0x61, 0xE9], "a\u{FFFD}"),
      ("utf-16le", [0x61, 0, 0x62], "a\u{FFFD}"),
      ("utf-16be", [0xD8, 0x3D], "\u{FFFD}"),
    ] as [(String, [UInt8], String)])
  func malformed(charset: String, bytes: [UInt8], expected: String) {
    #expect(
      TextDecoding.text(of: bytes, contentType: "text/plain; charset=\(charset)") == expected)
  }

  @Test(
    "The charset is found among parameters, in any case, with or without quotes",
    arguments: [
      ("text/html; charset=utf-8", "utf-8"),
      ("text/html ;Charset = \"utf-8\" ; x=y", "utf-8"),
      ("text/html; x=\"a;b\"; charset=latin1", "latin1"),
      ("text/html; x=\"a\\\";charset=bad\"; charset=good", "good"),
      ("text/html; charset=\"ut\\f-8\"", "utf-8"),
      ("text/html; charset=a; charset=b", "a"),
      ("text/html;;charset=a;", "a"),
    ])
  func parameter(contentType: String, expected: String) {
    #expect(TextDecoding.charsetName(ofContentType: contentType) == expected)
  }

  @Test("No bytes are no text", arguments: TextDecoding.Charset.allCases)
  func empty(charset: TextDecoding.Charset) {
    #expect(TextDecoding.text(of: [], charset: charset) == "")
  }

  @Test("Each byte is a character of ISO-8859-1, and comes back as it was")
  func everyByte() {
    let text = TextDecoding.text(of: UInt8.min...UInt8.max, charset: .latin1)
    #expect(text.unicodeScalars.map(\.value) == Array(0...255))
  }
}
