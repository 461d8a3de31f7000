internal import HTTPTransfer
internal import HTTPTransferCore

/// What is to be done after the lock of a version is released.
struct VersionActions {
  var wakes: [ParkedRead] = []
  var failures: [(read: ParkedRead, error: FileError)] = []
  var starts: [Segment] = []
  var cancels: [ExchangeID] = []
  /// Requests for which somebody waits from now on.
  var raises: [ExchangeID] = []
  /// Paused requests that go on.
  var resumes: [ExchangeID] = []
  /// The servers of requests that are given up because they bring nothing.
  var silentMirrors: [(index: Int, error: FileError)] = []
  /// Pieces that are to be hashed.
  var checks: [PieceTable.Check] = []
  /// Opens that have waited for the length, and go on.
  var lengthAnswers: [LengthWait] = []
  /// Segments whose writers hold what a read waits for.
  var flushes: [SegmentID] = []
  /// Plan again after this delay.
  var retryAfter: Duration?
  /// The version now has reads or requests that must be watched.
  var needsWatch = false
}
