import ExtentRecord
import HTTPTransferCore
import LinuxSystem

/// The content of an entry's files when an object adopts them.
struct FoundEntry {
  let header: RecordHeader
  /// The end of the record's log.
  let end: LogEnd
  /// The data file's stamp at its opening; nil if the file system cannot show changes.
  let stamp: FileFingerprint?
  /// Whether the record has the same stamp.
  var isStamped = false
  /// The extents that are present, and the part of them that was not read.
  var extents = ExtentSet()
  var believed = ExtentSet()
  /// The body bytes received for the entry, and those stored that no COMMIT covers.
  var fetchedByteCount: Int64 = 0
  var uncommittedByteCount: Int64 = 0
  /// See ``CacheEntry/isRecorded(_:)``.
  var checksumMark: UInt64 = 0
}
