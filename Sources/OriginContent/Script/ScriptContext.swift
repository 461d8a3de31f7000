/// The values of a request for a script's expressions and texts, and the source of its random
/// numbers.
struct ScriptContext {
  let request: RequestHead
  /// The requested range, half-open, in bytes.
  let range: Range<Int64>
  let completeLength: Int64
  let version: UInt64
  let requestNumber: Int64
  /// Seconds since 1970.
  let now: Int64
  /// The response that the parameters alone would make.
  let planned: ResponsePlan
  var random: ScriptRandom
  /// The number of the round in the innermost repetition.
  var index: Int64 = 0

  /// The port that the client addressed.
  var port: Int64 {
    let host = request.fields["host"] ?? ""
    guard let colon = host.lastIndex(of: ":") else { return 80 }
    // In an IPv6 address without a port, all colons precede the closing bracket.
    return ByteText.decimal(host[host.index(after: colon)...]) ?? 80
  }

  /// The requested bytes: from the first to the last of the ranges; all bytes without a range.
  ///
  /// If the resource ends before the ranges, these are the bytes that the field names.
  static func askedRange(of request: RequestHead, completeLength: Int64) -> Range<Int64> {
    let field = request.fields["range"]
    switch RangeSelection(field: field, completeLength: completeLength, allowsSeveral: true) {
    case .whole: return 0..<completeLength
    case .part(let range): return range
    case .parts(let ranges):
      return ranges.reduce(ranges[0]) {
        min($0.lowerBound, $1.lowerBound)..<max($0.upperBound, $1.upperBound)
      }
    case .unsatisfiable:
      let endless = RangeSelection(field: field, completeLength: .max)
      if case .part(let range) = endless, range.upperBound < .max { return range }
      return completeLength..<completeLength
    }
  }
}
