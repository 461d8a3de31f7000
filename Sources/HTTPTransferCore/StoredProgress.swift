/// Counts stored bytes until they end a series of failures.
package struct StoredProgress: Sendable {
  /// The bytes that were stored since a series last ended.
  private var byteCount: Int64 = 0

  package init() {}

  /// Records stored bytes.
  ///
  /// - Parameters:
  ///   - added: their number.
  ///   - enough: how many end a series (``FetchConstants/progressByteCount(of:)``).
  /// - Returns: whether they do, together with those before them.
  package mutating func ends(with added: Int64, enough: Int64) -> Bool {
    byteCount += added
    guard byteCount >= enough else { return false }
    byteCount = 0
    return true
  }
}
