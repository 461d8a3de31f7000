/// What a `Range` field selects of a representation (RFC 9110 §14.1.2, §14.2).
public enum RangeSelection: Equatable, Sendable {
  /// No range, one of an unknown unit, malformed, or several of them: the whole is sent.
  case whole
  /// One satisfiable range, cut at the complete length: half-open, in bytes.
  case part(Range<Int64>)
  /// The answer is 416.
  case unsatisfiable

  /// Reads a field value against a complete length in bytes.
  public init(field: String?, completeLength: Int64) {
    self = .whole
    guard let field, field.lowercased().hasPrefix("bytes=") else { return }
    let spec = ByteText.trimmed(field[...].dropFirst("bytes=".count))
    // Several ranges at once would need a multipart answer; a server may send the whole instead.
    let ends = spec.split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, !spec.contains(",") else { return }
    if ends[0].isEmpty {
      guard let suffix = ByteText.decimal(ends[1]) else { return }
      self =
        suffix == 0 || completeLength == 0
        ? .unsatisfiable : .part(max(0, completeLength - suffix)..<completeLength)
      return
    }
    guard let first = ByteText.decimal(ends[0]) else { return }
    var last = Int64.max - 1
    if !ends[1].isEmpty {
      guard let number = ByteText.decimal(ends[1]), number >= first else { return }
      last = min(number, last)
    }
    self = first < completeLength ? .part(first..<min(last + 1, completeLength)) : .unsatisfiable
  }
}
