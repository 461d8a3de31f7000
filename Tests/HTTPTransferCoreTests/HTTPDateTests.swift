import Foundation
import HTTPTransferCore
import SeededRandom
import Testing

@Suite struct HTTPDateTests {
  @Test(
    "Dates of the one form in use are read",
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
      ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
      // Leap days, and the 1 March after them: 2000 is a leap year, 1900 and 2100 are not.
      ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
      ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
      ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
      ("Sun, 28 Feb 2100 23:59:59 GMT", 4_107_542_399),
      ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
      ("Wed, 28 Feb 1900 23:59:59 GMT", -2_203_891_201),
      ("Thu, 01 Mar 1900 00:00:00 GMT", -2_203_891_200),
      ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
      ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
      ("Sun, 06 Nov 1994 08:49:37 UTC", 784_111_777),
      // A leap second counts as the first second of the next minute.
      ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
    ] as [(String, Int64)])
  func known(field: String, seconds: Int64) {
    #expect(HTTPDate.secondsSince1970(field) == seconds)
  }

  @Test(
    "Anything else is no date",
    arguments: [
      "", "0", "784111777", "never", "Sun, 06 Nov 1994", "Sun, 06 Nov 1994 08:49:37",
      "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 +0000",
      "Sun 06 Nov 1994 08:49:37 GMT", "06 Nov 1994 08:49:37 GMT",
      // The obsolete forms.
      "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
      "1994-11-06T08:49:37Z",
      "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 32 Nov 1994 08:49:37 GMT",
      "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
      "Sun, 06 November 1994 08:49:37 GMT", "Sun, 06 11 1994 08:49:37 GMT",
      "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1600 08:49:37 GMT",
      "Sun, 06 Nov 10000 08:49:37 GMT", "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
      "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
      "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 08:49 GMT",
      "Sun, 06 Nov 1994 08:49:37:00 GMT", "Sun, 06 Nov 1994 8::37 GMT",
      "Sun, 06 Nov 1994 08:49:37 GMT GMT",
      // Days that do not exist in the month.
      "Wed, 29 Feb 2023 00:00:00 GMT", "Mon, 29 Feb 1900 00:00:00 GMT",
      "Fri, 30 Feb 2024 00:00:00 GMT", "Fri, 31 Apr 2026 00:00:00 GMT",
    ])
  func malformed(field: String) {
    #expect(HTTPDate.secondsSince1970(field) == nil)
  }

  @Test("Ten thousand random times agree with the C library")
  func againstOracle() {
    var random = SeededGenerator(seed: 1)
    for _ in 0..<10_000 {
      let seconds = Int64.random(in: -11_644_473_600...253_402_300_799, using: &random)
      var time = time_t(seconds)
      var fields = tm()
      gmtime_r(&time, &fields)
      var text = [CChar](repeating: 0, count: 64)
      let count = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &fields)
      let field = String(decoding: text[..<count].map(UInt8.init), as: UTF8.self)
      #expect(HTTPDate.secondsSince1970(field) == seconds, "\(field)")
    }
  }
}
