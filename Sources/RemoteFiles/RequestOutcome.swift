/// How a request for bytes of a version has ended.
enum RequestOutcome {
  /// It has brought all that it was to bring, as its server says.
  case finished
  /// It was ended on purpose: what it was to bring is planned again.
  case dropped
  /// Its server has failed, and another one can be asked.
  case moved(after: FileError)
  /// It has failed in a way that may pass.
  case failed(FileError, retryAfter: Duration?)
  /// It has failed in a way that does not pass: so do all reads that wait.
  case failedForGood(FileError)
}
