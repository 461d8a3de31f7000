/// Dates of HTTP fields in their one current form, IMF-fixdate (RFC 9110 §5.6.7).
package enum HTTPDate {
  private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// The field value of a time in seconds since 1970-01-01 00:00 UTC (not negative), such as
  /// `Sun, 06 Nov 1994 08:49:37 GMT`.
  package static func field(seconds: Int64) -> String {
    let seconds = max(0, seconds)
    let days = seconds / 86_400
    let (year, month, day) = civil(days: days)
    let time = seconds % 86_400
    return "\(weekdays[Int(days % 7)]), \(padded(day)) \(months[Int(month) - 1]) \(year) "
      + "\(padded(time / 3600)):\(padded(time / 60 % 60)):\(padded(time % 60)) GMT"
  }

  /// The seconds since 1970 of an IMF-fixdate; nil for anything else.
  package static func seconds(field: some StringProtocol) -> Int64? {
    let words = field.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", let day = ByteText.decimal(words[1]),
      let month = months.firstIndex(of: String(words[2])), let year = ByteText.decimal(words[3])
    else { return nil }
    let clock = words[4].split(separator: ":").compactMap { ByteText.decimal($0) }
    guard clock.count == 3, (1...31).contains(day), (1970...9999).contains(year),
      clock[0] < 24, clock[1] < 60, clock[2] <= 60
    else { return nil }
    return days(year: year, month: Int64(month) + 1, day: day) * 86_400
      + clock[0] * 3600 + clock[1] * 60 + clock[2]
  }

  private static func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

  /// Days since 1970 to year, month (1...12) and day, in the proleptic Gregorian calendar.
  ///
  /// Years are counted from March, so the leap day is the last one.
  private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468  // Days since 0000-03-01.
    let era = shifted / 146_097  // 400 years.
    let dayOfEra = shifted % 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
  }

  private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = year / 400
    let yearOfEra = year % 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}
