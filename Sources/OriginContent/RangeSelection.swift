/// The selection that a `Range` field makes (RFC 9110 §14.1.2, §14.2).
package enum RangeSelection: Equatable, Sendable {
  /// The whole: there is no range, its unit is unknown, it is malformed, or several are not
  /// allowed.
  case whole
  /// One satisfiable range, cut at the complete length: half-open, in bytes.
  case part(Range<Int64>)
  /// Two or more satisfiable ranges in the order of the field, also cut at the complete length.
  case parts([Range<Int64>])
  /// The response is 416.
  case unsatisfiable

  /// The maximum sum of several ranges in bytes: with their framing, it is far from an overflow.
  private static let byteLimit: Int64 = 1 << 62

  /// Reads a field value for a complete length in bytes.
  ///
  /// Several ranges need a multipart response. If that is not allowed, the selection is the whole,
  /// which the RFC permits.
  package init(field: String?, completeLength: Int64, allowsSeveral: Bool = false) {
    self = .whole
    guard let field, field.lowercased().hasPrefix("bytes=") else { return }
    let specs = field.dropFirst("bytes=".count).split(
      separator: ",", omittingEmptySubsequences: false)
    guard specs.count == 1 || allowsSeveral else { return }
    var ranges: [Range<Int64>] = []
    var byteCount: Int64 = 0
    for spec in specs {
      switch Self.one(ByteText.trimmed(spec), completeLength) {
      case .part(let range):
        ranges.append(range)
        let (sum, overflow) = byteCount.addingReportingOverflow(
          range.upperBound - range.lowerBound)
        guard !overflow else { return }
        byteCount = sum
      case .unsatisfiable: continue
      case .whole, .parts: return
      }
    }
    switch ranges.count {
    case 0: self = .unsatisfiable
    case 1: self = .part(ranges[0])
    default: if byteCount <= Self.byteLimit { self = .parts(ranges) }
    }
  }

  /// The selection of one range of a field; the whole if it is malformed.
  private static func one(_ spec: Substring, _ completeLength: Int64) -> RangeSelection {
    let ends = spec.split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2 else { return .whole }
    if ends[0].isEmpty {
      guard let suffix = ByteText.decimal(ends[1]) else { return .whole }
      return suffix == 0 || completeLength == 0
        ? .unsatisfiable : .part(max(0, completeLength - suffix)..<completeLength)
    }
    guard let first = ByteText.decimal(ends[0]) else { return .whole }
    var last = Int64.max - 1
    if !ends[1].isEmpty {
      guard let number = ByteText.decimal(ends[1]), number >= first else { return .whole }
      last = min(number, last)
    }
    return first < completeLength ? .part(first..<min(last + 1, completeLength)) : .unsatisfiable
  }
}
