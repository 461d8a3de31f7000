import HTTPTransferCore
import HTTPTypes
import Testing

/// The delay in a response.
@Suite struct RetryAfterTests {
  /// 1994-11-06 08:49:37 GMT.
  private static let sunday: Int64 = 784_111_777

  private func delay(
    _ field: String?, date: String? = nil, now: Int64? = nil
  ) -> Duration? {
    var fields = HTTPFields()
    fields[.retryAfter] = field
    fields[.date] = date
    return RetryAfter.delay(fields, now: now)
  }

  @Test("A date counts from the response's own date, whatever our clock says")
  func date() {
    let later = "Sun, 06 Nov 1994 08:49:57 GMT"
    for now in [nil, 0, Self.sunday, Int64.max, Int64.min] {
      #expect(delay(later, date: "Sun, 06 Nov 1994 08:49:37 GMT", now: now) == .seconds(20))
    }
    // A time in the past: no delay.
    #expect(delay(later, date: "Sun, 06 Nov 1994 08:50:37 GMT") == .zero)
    #expect(delay(later, date: "Mon, 06 Nov 1950 08:50:37 GMT") == .seconds(86_400))
  }

  @Test("Without a date of the response our clock is used, where it may be")
  func clock() {
    let later = "Sun, 06 Nov 1994 08:49:57 GMT"
    #expect(delay(later, now: Self.sunday) == .seconds(20))
    #expect(delay(later, now: Self.sunday + 3600) == .zero)
    #expect(delay(later) == nil)
  }

  @Test(
    "What is neither a number nor a date says nothing",
    arguments: [
      nil, "", " ", "-5", "1.5", "soon", "12s", "Sunday, 06-Nov-94 08:49:37 GMT", "0x10", "٣",
    ] as [String?])
  func garbage(field: String?) {
    #expect(delay(field, date: "Sun, 06 Nov 1994 08:49:37 GMT", now: 0) == nil)
  }

  @Test("A number beyond all bounds is a day")
  func huge() {
    for field in ["86401", "9223372036854775808", String(repeating: "9", count: 5000)] {
      #expect(delay(field) == .seconds(86_400))
    }
  }
}
