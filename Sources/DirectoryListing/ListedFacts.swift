internal import HTTPTransferCore

/// The attributes of a file in a listing.
package struct ListedFacts: Sendable, Hashable {
  /// The file's exact length in bytes.
  package let byteCount: Int64

  /// The modification time in seconds since 1970, to the minute.
  ///
  /// The listing does not tell the server's time zone; we assume UTC.
  package let modificationTime: Int64

  package init(byteCount: Int64, modificationTime: Int64) {
    self.byteCount = byteCount
    self.modificationTime = modificationTime
  }

  /// The longest text that is examined.
  static let maximumTextByteCount = 96

  /// Reads the text beside a link: a date, a time and a length, and nothing else.
  ///
  /// Nil for all other texts: for a rounded length (`1.2K`), for 0, which tools act on without
  /// opening the file, and for a description after the length.
  init?(_ text: [UInt8]) {
    guard text.count <= Self.maximumTextByteCount else { return nil }
    let words = String(decoding: text, as: UTF8.self).split { $0 == "\u{A0}" || $0.isWhitespace }
    guard words.count == 3, let byteCount = Int64(length: words[2]), byteCount > 0,
      let time = Self.time(date: words[0], clock: words[1])
    else { return nil }
    self.init(byteCount: byteCount, modificationTime: time)
  }

  /// `21-Nov-2026` (nginx), `2026-11-21` (Apache) or `2026-Nov-21` (lighttpd), and `09:01` or
  /// `09:01:33`.
  private static func time(date: Substring, clock: Substring) -> Int64? {
    let date = date.split(separator: "-", omittingEmptySubsequences: false)
    let clock = clock.split(separator: ":", omittingEmptySubsequences: false)
    guard date.count == 3, (2...3).contains(clock.count),
      let month = HTTPDate.month(of: date[1]) ?? Int64(digits: date[1]).flatMap(Int.init(exactly:)),
      let hour = Int64(digits: clock[0]), let minute = Int64(digits: clock[1]),
      let second = clock.count == 3 ? Int64(digits: clock[2]) : 0
    else { return nil }
    let isYearFirst = date[0].utf8.count == 4
    guard let year = Int64(digits: date[isYearFirst ? 0 : 2]),
      let day = Int64(digits: date[isYearFirst ? 2 : 0])
    else { return nil }
    return HTTPDate.secondsSince1970(
      year: year, month: month, day: day, hour: hour, minute: minute, second: second)
  }
}
