/// All files of a download or upload at one moment.
package struct DisplaySnapshot: Sendable, Equatable {
  /// The files, in the order in which they were given.
  package var items: [DisplayItem]

  /// The seconds since the command began; they move the indicators of files of unknown length.
  package var elapsed: Double

  /// Whether bytes go to the server.
  package var isUpload: Bool

  package init(items: [DisplayItem], elapsed: Double, isUpload: Bool = false) {
    self.items = items
    self.elapsed = elapsed
    self.isUpload = isUpload
  }

  /// The sums over all files.
  package var totals: DisplayTotals { DisplayTotals(of: items) }
}
