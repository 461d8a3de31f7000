internal import HTTPTransferCore
internal import RangeCache

/// Says where `store` has put bytes.
///
/// Bytes that arrive are marked present by a receipt only (those of pieces when their hash is
/// right, too).
///
/// `VersionHoldings.accept` compares the place with the one that reads go to now. So a late receipt does
/// not mark bytes that were given up, replaced or found damaged meanwhile.
struct StoreReceipt: Sendable {
  /// Where bytes were put.
  enum Place: Sendable {
    /// The data file of an entry; `generation` is that of what was believed of its bytes before.
    case cache(CacheEntry, generation: Int)
    case memory(SpillFile)
  }

  let range: ByteRange
  let place: Place
}
