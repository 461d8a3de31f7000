import CXXHash

/// XXH3-64, the checksum of records and of stored bytes.
///
/// It detects damage, not malice.
package enum ContentHash {
  /// The hash of `bytes`.
  ///
  /// It allocates nothing, because it runs on every byte that is stored.
  @inline(__always)
  package static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    httpfs_xxh3(bytes.baseAddress, bytes.count)
  }

  /// The hash of `bytes` under `seed`.
  @inline(__always)
  package static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
    httpfs_xxh3_with_seed(bytes.baseAddress, bytes.count, seed)
  }
}

/// The hash of bytes that arrive in pieces.
package struct StreamingHash: ~Copyable {
  private let state: OpaquePointer?

  package init() {
    state = XXH3_createState()
    if let state { _ = XXH3_64bits_reset(state) }
  }

  deinit {
    if let state { _ = XXH3_freeState(state) }
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard let state else { return }
    _ = httpfs_xxh3_update(state, bytes.baseAddress, bytes.count)
  }

  /// The hash of all bytes so far; nil if memory was short.
  package var value: UInt64? {
    state.map { XXH3_64bits_digest($0) }
  }
}
