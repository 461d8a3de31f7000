internal import LinuxSystem

/// Identifies the state of a finished file: its identity, length and modification time.
///
/// The change time is left out. Storing the stamp in an attribute changes it, as do `chmod`, `mv`
/// and some backups, none of which should make `--overwrite` necessary.
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
