/// The history of the blocks of a data file that hold no present bytes, as this process knows it.
///
/// It is shared by all entry objects that have the file open.
///
/// A failed sync may leave such a block in a state in which ext4 shows it as written although it is
/// not. Bytes written to it later vanish when the kernel drops their page, even though fdatasync(2)
/// succeeds (measured on Linux 6.18 over a full disk). So blocks of unknown history are freed
/// before the data file is written to.
struct DataBlocks {
  private var past: Past
  /// How many entry objects have the data file open.
  private var userCount = 0

  private enum Past {
    /// An earlier process may have lost bytes there, or this process may have lost unsynced bytes
    /// when it last closed the file. Present bytes lie elsewhere.
    case unknown
    /// This process has lost bytes there, and replies may still be reading them.
    case lost
    case settled
  }

  /// - Parameter isSettled: whether this process has created the data file or settled its blocks,
  ///   and has lost no bytes there.
  init(isSettled: Bool) { past = isSettled ? .settled : .unknown }

  mutating func beginUse() { userCount += 1 }

  /// - Parameter isSynced: whether all writes of the object are known to be on the disk.
  mutating func endUse(isSynced: Bool) {
    userCount -= 1
    // The kernel may report the disk's refusal to another program only. Another open object gets
    // its own report of a failure, and makes bytes present that were stored since.
    if !isSynced, isUnused, past == .settled { past = .unknown }
  }

  var isUnused: Bool { userCount == 0 }

  /// A sync of the data file has failed.
  mutating func recordLoss() { past = .lost }

  /// The blocks were freed.
  mutating func recordSettled(after before: DataBlocks) {
    if past == before.past { past = .settled }
  }

  var isSettled: Bool { past == .settled }

  /// Whether the file may be written to.
  ///
  /// False while another object, which lost bytes there, may be read.
  var isWritable: Bool { past != .lost || userCount <= 1 }
}
