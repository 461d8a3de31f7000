/// How a request for bytes of a version has ended.
enum RequestOutcome {
  /// As its server says, it has brought all of its bytes.
  case finished
  /// It was ended on purpose: its missing bytes are planned again.
  case dropped
  /// Its server has failed, and another one can be asked.
  case moved(after: FileError)
  /// It has failed for a reason that may be temporary.
  case failed(FileError, retryAfter: Duration?)
  /// It has failed permanently: so do all waiting reads.
  case failedForGood(FileError)
}
