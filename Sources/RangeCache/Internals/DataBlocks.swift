/// What this process knows of the blocks of a data file that hold nothing present, whichever entry objects
/// are open on the file.
///
/// A sync that fails may leave such a block in a state in which ext4 shows it as written and it is not:
/// bytes that are written to it later are gone when the kernel drops their page, though fdatasync(2) succeeds
/// (measured on Linux 6.18 over a disk without room). So before anything is written into a data file, its
/// blocks of unknown past are given back.
struct DataBlocks {
  private var past: Past
  /// How many entry objects are open on the data file.
  private var userCount = 0

  private enum Past {
    /// A process before this one may have lost bytes there, or this one what it had not synced when it
    /// last closed the file. What is present lies elsewhere.
    case unknown
    /// This process has lost bytes there, which replies may still be reading.
    case lost
    case settled
  }

  /// - Parameter isSettled: whether this process has created the data file, or settled its blocks, and lost
  ///   nothing there.
  init(isSettled: Bool) { past = isSettled ? .settled : .unknown }

  mutating func beginUse() { userCount += 1 }

  /// - Parameter isSynced: whether all that the object has written is known to be on the disk.
  mutating func endUse(isSynced: Bool) {
    userCount -= 1
    // That the disk has refused them may be told to another program, and to nobody else. Another object
    // that is open hears of it by itself, and has present what was stored since.
    if !isSynced, isUnused, past == .settled { past = .unknown }
  }

  var isUnused: Bool { userCount == 0 }

  /// A sync of the data file has failed.
  mutating func noteLoss() { past = .lost }

  /// They were given back.
  mutating func noteSettled(after before: DataBlocks) {
    if past == before.past { past = .settled }
  }

  var isSettled: Bool { past == .settled }

  /// Whether the file may be written to: not, while another object, which had lost bytes there, may be read.
  var isWritable: Bool { past != .lost || userCount <= 1 }
}
