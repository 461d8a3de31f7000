package import HTTPTypes

/// The delay that a response asks for (RFC 9110 §10.2.3).
package enum RetryAfter {
  /// The largest delay taken from the field; ``RetryPolicy`` obeys less.
  static let ceiling: Int64 = 86_400

  /// The delay that the response's `Retry-After` names, as seconds or as a date.
  ///
  /// A date is compared with the response's own `Date`, which makes clock differences harmless;
  /// without a `Date`, it is compared with our clock.
  ///
  /// - Parameters:
  ///   - fields: the fields of the response.
  ///   - now: our time in seconds since 1970; nil if it must not be used.
  /// - Returns: the delay, zero for a date in the past; nil if the field is absent or neither a
  ///   number nor a date.
  package static func delay(_ fields: HTTPFields, now: Int64?) -> Duration? {
    guard let field = fields[.retryAfter] else { return nil }
    let value = Substring(field).trimmed
    if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      // A number that is too large is still a number.
      return .seconds(min(Int64(digits: value) ?? ceiling, ceiling))
    }
    guard let moment = HTTPDate.secondsSince1970(String(value)),
      let date = fields.readable(.date).flatMap({ HTTPDate.secondsSince1970($0) }) ?? now
    else { return nil }
    return .seconds(min(max(0, moment - date), ceiling))
  }
}
