import ExtentRecord
import HTTPTransferCore

/// The claims of a record that were believed without a look at their bytes, by their place.
///
/// Two claims may overlap: bytes that were found damaged are claimed again when they have been
/// fetched again, and the older claim is true again then.
struct ClaimIndex {
  struct Claim {
    let range: ByteRange
    let contentHash: UInt64
  }

  /// Ascending by the first byte.
  private let claims: [Claim]
  /// How far before a place a claim may begin that reaches it.
  private let greatestByteCount: Int64

  init(_ claims: [Claim]) {
    self.claims = claims.sorted { $0.range.lowerBound < $1.range.lowerBound }
    greatestByteCount = claims.lazy.map(\.range.byteCount).max() ?? 0
  }

  /// The claims that say something of `range`, ascending.
  func claims(about range: ByteRange) -> [Claim] {
    let earliest = range.lowerBound - greatestByteCount
    var low = 0
    var high = claims.count
    while low < high {
      let middle = (low + high) / 2
      if claims[middle].range.lowerBound > earliest { high = middle } else { low = middle + 1 }
    }
    return claims[low...].prefix { $0.range.lowerBound < range.upperBound }
      .filter { $0.range.overlaps(range) }
  }
}
