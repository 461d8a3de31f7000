/// All files of a download or upload at one moment.
package struct DisplaySnapshot: Sendable, Equatable {
  /// The files, in the order in which they were given.
  package let items: [DisplayItem]

  /// The indices of the items that may differ from the previous snapshot, in their order.
  ///
  /// They cover each item once after its end; of a long list, most items wait or have ended.
  package let changing: [Int]

  /// The indices of the items that have failed.
  package let failed: [Int]

  /// The sums over all files.
  package let totals: DisplayTotals

  /// The seconds since the command began; they move the indicators of files of unknown length.
  package var elapsed: Double

  /// Whether bytes go to the server.
  package var isUpload: Bool

  /// A snapshot of items of which nothing is known.
  package init(items: [DisplayItem], elapsed: Double, isUpload: Bool = false) {
    var totals = DisplayTotals()
    var failed: [Int] = []
    for (index, item) in items.enumerated() {
      totals.add(item)
      if case .failed = item.state { failed.append(index) }
    }
    self.init(
      items: items, changing: Array(items.indices), failed: failed, totals: totals,
      elapsed: elapsed, isUpload: isUpload)
  }

  /// A snapshot by a caller that counts.
  package init(
    items: [DisplayItem], changing: [Int], failed: [Int], totals: DisplayTotals, elapsed: Double,
    isUpload: Bool
  ) {
    self.items = items
    self.changing = changing
    self.failed = failed
    self.totals = totals
    self.elapsed = elapsed
    self.isUpload = isUpload
  }
}
