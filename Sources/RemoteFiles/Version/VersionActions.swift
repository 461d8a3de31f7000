internal import HTTPTransfer
internal import HTTPTransferCore

/// The actions to take after the lock of a version is released.
struct VersionActions {
  var wakes: [ParkedRead] = []
  var failures: [(read: ParkedRead, error: FileError)] = []
  var starts: [Segment] = []
  var cancels: [ExchangeID] = []
  /// Requests that a read waits for from now on.
  var raises: [ExchangeID] = []
  /// Paused requests to resume.
  var resumes: [ExchangeID] = []
  /// The servers of requests that are abandoned because they stall.
  var silentMirrors: [(index: Int, error: FileError)] = []
  /// Pieces to hash.
  var checks: [PieceTable.Check] = []
  /// Opens that have waited for the length, and are to be answered.
  var lengthAnswers: [LengthWait] = []
  /// Segments whose writers hold bytes that a read waits for.
  var flushes: [SegmentID] = []
  /// Plan again after this delay.
  var retryAfter: Duration?
  /// Whether to record the length for later mounts.
  var recordsLength = false
  /// Whether to look for the cache entry again.
  var looksAgain = false
  /// Whether the version now has reads, requests or bytes that must be watched.
  var needsWatch = false
}
