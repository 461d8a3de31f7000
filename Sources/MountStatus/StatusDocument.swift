/// A report as it is written, a file at a time: what comes before, between and behind them.
///
/// A mount may have a million files: nobody needs to hold the rows of all of them.
public struct StatusDocument: Sendable {
  public enum Form: Sendable, Hashable, CaseIterable {
    /// `.status`
    case text
    /// `.status.json`
    case json
    /// `.metrics`
    case metrics
  }

  /// One way over all files.
  struct Pass: Sendable {
    /// What comes before the first file.
    let heading: [UInt8]
    /// Appends what is said of a file, perhaps nothing.
    let row: @Sendable (_ file: FileStatus, _ isFirst: Bool, _ bytes: inout [UInt8]) -> Void
  }

  let passes: [Pass]
  /// What comes behind all.
  let ending: [UInt8]

  /// - Parameters:
  ///   - form: how it is written.
  ///   - head: what is said of the mount; its files and totals do not matter.
  ///   - sums: of the files that will follow.
  public init(_ form: Form, head: StatusReport, sums: StatusSums) {
    var head = head
    head.files = []
    head.totals = sums.totals
    switch form {
    case .text:
      passes = [head.textPass(sums)]
      ending = []
    case .json:
      // The document of no files, cut where they are.
      let whole = head.jsonOfHead
      let end = Array("]}\n".utf8)
      let row: @Sendable (FileStatus, Bool, inout [UInt8]) -> Void = { file, isFirst, bytes in
        // About what a file needs with a name and a URL of common length.
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

  /// The whole of it, for files that are at hand.
  func bytes(of files: [FileStatus]) -> [UInt8] {
    var bytes: [UInt8] = []
    for pass in passes {
      bytes += pass.heading
      for index in files.indices { pass.row(files[index], index == 0, &bytes) }
    }
    return bytes + ending
  }
}
