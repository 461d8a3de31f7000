/// Dates of HTTP fields, in seconds since 1970 (RFC 9110 §5.6.7).
package enum HTTPDate {
  private static let months: [Substring] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// A limit that no date exceeds; longer fields are rejected without parsing.
  private static let maximumByteCount = 64

  /// Parses an IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`.
  ///
  /// Returns nil for anything else, including the obsolete forms, which current servers do not
  /// send.
  package static func secondsSince1970(_ field: String) -> Int64? {
    guard field.utf8.count <= maximumByteCount else { return nil }
    let parts = field.split(separator: " ")
    guard parts.count == 6, parts[0].hasSuffix(","), parts[5] == "GMT" || parts[5] == "UTC",
      let day = Int64(digits: parts[1]), let month = month(of: parts[2]),
      let year = Int64(digits: parts[3])
    else { return nil }
    let clock = parts[4].split(separator: ":", omittingEmptySubsequences: false)
    guard clock.count == 3, let hour = Int64(digits: clock[0]),
      let minute = Int64(digits: clock[1]), let second = Int64(digits: clock[2])
    else { return nil }
    return secondsSince1970(
      year: year, month: month, day: day, hour: hour, minute: minute, second: second)
  }

  /// The time of a date in UTC, with months counted from 1; nil if there is no such date.
  package static func secondsSince1970(
    year: Int64, month: Int, day: Int64, hour: Int64, minute: Int64, second: Int64
  ) -> Int64? {
    guard (1601...9999).contains(year), (1...12).contains(month),
      (1...dayCount(month: month, year: year)).contains(day), (0..<24).contains(hour),
      (0..<60).contains(minute), (0...60).contains(second)
    else { return nil }
    let days = daysSince1970(year: year, month: Int64(month), day: day)
    return ((days * 24 + hour) * 60 + minute) * 60 + second
  }

  /// The number of the month with a name such as `Nov`, counted from 1.
  package static func month(of name: Substring) -> Int? {
    months.firstIndex(of: name).map { $0 + 1 }
  }

  /// The number of days of a month, counted from 1 for January.
  private static func dayCount(month: Int, year: Int64) -> Int64 {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let counts: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return counts[month - 1]
  }

  /// The number of days from 1970-01-01 in the Gregorian calendar, counted in eras of 400 years
  /// that start on 1 March, so that the leap day is the last day of its year.
  private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = shifted / 400
    let yearOfEra = shifted % 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }
}
