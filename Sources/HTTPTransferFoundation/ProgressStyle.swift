/// What the units of a queue's progress are.
public enum ProgressStyle: Sendable, Hashable {
  /// One unit for each transfer: it moves when one has ended, also without success.
  case simple
  /// Bytes: it is indeterminate while the length of a transfer is unknown.
  ///
  /// `TransferQueue.Configuration.learnsLengths` makes lengths known early.
  case accurate
}
