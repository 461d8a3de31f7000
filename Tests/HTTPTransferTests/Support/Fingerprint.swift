/// Identifies a large body in a test's message, which its bytes would flood.
struct Fingerprint: Equatable, Sendable {
  let byteCount: Int
  private let hash: Int

  fileprivate init(_ bytes: UnsafeRawBufferPointer) {
    byteCount = bytes.count
    var hasher = Hasher()
    hasher.combine(bytes: bytes)
    hash = hasher.finalize()
  }
}

extension [UInt8] {
  /// Equal for equal bytes.
  var fingerprint: Fingerprint { withUnsafeBytes { Fingerprint($0) } }
}

extension ArraySlice<UInt8> {
  /// Equal for equal bytes.
  var fingerprint: Fingerprint { withUnsafeBytes { Fingerprint($0) } }
}
