import ExtentRecord
import HTTPTransferCore

/// The claims of a record whose bytes were trusted without reading them, by offset.
///
/// Two claims may overlap: damaged bytes are claimed again after they were fetched again, and the
/// older claim is then true again too.
struct ClaimIndex {
  struct Claim {
    let range: ByteRange
    let contentHash: UInt64
  }

  /// Ascending by the first byte.
  private let claims: [Claim]
  /// How far before an offset a claim that contains it may begin.
  private let maximumByteCount: Int64

  init(_ claims: [Claim]) {
    self.claims = claims.sorted { $0.range.lowerBound < $1.range.lowerBound }
    maximumByteCount = claims.lazy.map(\.range.byteCount).max() ?? 0
  }

  /// The claims that overlap `range`, ascending.
  func claims(about range: ByteRange) -> [Claim] {
    let earliest = range.lowerBound - maximumByteCount
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
