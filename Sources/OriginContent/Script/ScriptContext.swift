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

  func value(of variable: Expression.Variable) -> Int64 {
    switch variable {
    case .first: range.lowerBound
    case .last: range.upperBound - 1
    case .asked: range.upperBound - range.lowerBound
    case .length: completeLength
    case .size: planned.bodyByteCount
    case .version: Int64(clamping: version)
    case .request: requestNumber
    case .index: index
    case .now: now
    case .port: port
    }
  }

  func text(of word: TextTemplate.Word) -> String {
    switch word {
    case .etag: planned.head?["ETag"] ?? ""
    case .modified: planned.head?["Last-Modified"] ?? ""
    case .target: request.target
    case .path: request.path
    case .method: request.method
    case .host: request.fields["host"] ?? ""
    }
  }

  private var port: Int64 {
    let host = request.fields["host"] ?? ""
    guard let colon = host.lastIndex(of: ":") else { return 80 }
    // An IPv6 address without a port has its colons before its bracket.
    return ByteText.decimal(host[host.index(after: colon)...]) ?? 80
  }

  /// The requested bytes: from the first to the last of the ranges, all without a range, and those
  /// of the field if the resource ends before them.
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
