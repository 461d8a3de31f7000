/// The units of a queue's progress.
public enum ProgressStyle: Sendable, Hashable {
  /// One unit for each transfer; the progress changes when one has ended, even without success.
  case simple
  /// Bytes; the progress is indeterminate while the length of a transfer is unknown.
  ///
  /// `TransferQueue.Configuration.learnsLengths` makes lengths known early.
  case accurate
}
