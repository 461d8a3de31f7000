internal import LinuxSystem

/// What shows that a file is still the one that a download has finished, and as it was then: its
/// identity, length and time of modification.
///
/// Not the time of change: to store it in an attribute of the file changes it, and so do `chmod`,
/// `mv` and some backups, after which nobody should have to say `--overwrite`.
struct ResultStamp: Equatable, Sendable, CustomStringConvertible {
  let text: String
  let byteCount: Int64

  /// The stamp of an open file.
  init(of descriptor: Descriptor) throws(ErrorNumber) {
    let status = try SystemCalls.status(descriptor.rawValue)
    byteCount = status.byteCount
    text =
      "\(status.byteCount) \(status.modified.seconds).\(status.modified.nanoseconds)"
      + " \(try SystemCalls.identity(descriptor.rawValue))"
  }

  var description: String { text }

  static func == (one: ResultStamp, other: ResultStamp) -> Bool { one.text == other.text }
}
