internal import TextFormat

/// A report that is written one file at a time: its head, a row for each file, and its ending.
///
/// A mount may have a million files, so the rows are never all in memory.
package struct StatusDocument: Sendable {
  package enum Form: Sendable, Hashable, CaseIterable {
    /// `.status`
    case text
    /// `.status.json`
    case json
    /// `.metrics`
    case metrics
  }

  /// One pass over all files.
  struct Pass: Sendable {
    /// Written before the first file.
    let heading: [UInt8]
    /// Appends the row of a file, which may be empty.
    let row: @Sendable (_ file: FileStatus, _ isFirst: Bool, _ bytes: inout [UInt8]) -> Void
  }

  let passes: [Pass]
  /// Written after the last file.
  let ending: [UInt8]

  /// - Parameters:
  ///   - form: the format.
  ///   - head: the state of the mount; its files and totals are ignored.
  ///   - sums: the sums over the files that will follow.
  package init(_ form: Form, head: StatusReport, sums: StatusSums) {
    var head = head
    head.files = []
    head.totals = sums.totals
    switch form {
    case .text:
      passes = [head.textPass(sums)]
      ending = []
    case .json:
      // The document without files, cut where the files belong.
      let whole = head.jsonOfHead
      let end = Array("]}\n".utf8)
      let row: @Sendable (FileStatus, Bool, inout [UInt8]) -> Void = { file, isFirst, bytes in
        // About the size of a file's row with a name and a URL of common length.
        var writer = JSONWriter(capacity: 512)
        file.write(to: &writer)
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        bytes += writer.bytes
      }
      passes = [Pass(heading: whole.dropLast(end.count), row: row)]
      ending = end
    case .metrics:
      passes = head.metricsPasses(sums)
      ending = []
    }
  }

  /// The whole document, for files that are in memory.
  func bytes(of files: [FileStatus]) -> [UInt8] {
    var bytes: [UInt8] = []
    for pass in passes {
      bytes += pass.heading
      for index in files.indices { pass.row(files[index], index == 0, &bytes) }
    }
    return bytes + ending
  }
}
