internal import HTTPTransferCore
internal import RangeCache

/// Records where `store` has put bytes.
///
/// Only a receipt marks arrived bytes present; those of pieces also need the right hash.
///
/// `VersionHoldings.accept` compares the place with the one that reads use now. A late receipt
/// therefore does not mark bytes that were dropped, replaced or found damaged meanwhile.
struct StoreReceipt: Sendable {
  /// Where bytes were put.
  enum Place: Sendable {
    /// The data file of an entry; `generation` is that of its extents before.
    case cache(CacheEntry, generation: Int)
    case memory(SpillFile)
  }

  let range: ByteRange
  let place: Place
}
