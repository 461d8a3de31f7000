/// A half-open range of byte offsets in a representation: `lowerBound ..< upperBound`.
///
/// Compare numbers from the network before you form a range of them: `..<` traps on a
/// reversed pair.
public typealias ByteRange = Range<Int64>

extension Range<Int64> {
  /// The number of bytes in the range.
  @inlinable package var byteCount: Int64 { upperBound - lowerBound }

  /// The range of `byteCount` bytes that starts at `offset`; the upper bound saturates.
  @inlinable package init(offset: Int64, byteCount: Int64) {
    let (end, overflow) = offset.addingReportingOverflow(Swift.max(0, byteCount))
    self = offset..<(overflow ? Int64.max : end)
  }

  /// The value of an HTTP `Range` field that requests exactly these bytes
  /// (RFC 9110 §14.1.2: both ends inclusive).
  ///
  /// The range must not be empty. A range that ends at `Int64.maximumFileOffset` is open-ended:
  /// the field then requests all bytes from the lower bound on.
  package var rangeField: String {
    upperBound >= Int64.maximumFileOffset
      ? "bytes=\(lowerBound)-" : "bytes=\(lowerBound)-\(upperBound - 1)"
  }

  /// The range grown to multiples of `alignment` bytes, a power of two, and cut at `limit`.
  package func aligned(to alignment: Int64, limit: Int64) -> ByteRange {
    let lower = lowerBound & ~(alignment - 1)
    let (sum, overflow) = upperBound.addingReportingOverflow(alignment - 1)
    let upper = Swift.min(limit, overflow ? limit : sum & ~(alignment - 1))
    return lower..<Swift.max(lower, upper)
  }
}
