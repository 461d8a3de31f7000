import ExtentRecord
import Glibc
import HTTPTransferCore
import Synchronization

/// The blocks of data files that hold nothing present; see ``DataBlocks``.
extension CacheDirectory {
  /// Counts an entry object that is open on the data file `dataID`.
  func beginUse(ofData dataID: UInt64, isNew: Bool) {
    state.withLock { $0.blocks[dataID, default: DataBlocks(isNew: isNew)].beginUse() }
  }

  func endUse(ofData dataID: UInt64) {
    state.withLock { if $0.blocks[dataID]?.endUse() == true { $0.blocks[dataID] = nil } }
  }

  func noteLoss(inData dataID: UInt64) { state.withLock { $0.blocks[dataID]?.noteLoss() } }

  func isWritable(_ dataID: UInt64) -> Bool {
    state.withLock { $0.blocks[dataID]?.isWritable ?? true }
  }

  /// Gives back the blocks of `data`, the data file `dataID`, that hold nothing of `present`, where it is
  /// not known that nothing was lost there; by the writer of the file.
  func settle(
    _ data: Descriptor, _ dataID: UInt64, present: ExtentSet
  ) throws(ErrorNumber) {
    let (isSettled, isWritable) = state.withLock { state in
      let blocks = state.blocks[dataID]
      return (blocks?.isSettled ?? true, blocks?.isWritable ?? true)
    }
    if isSettled { return }
    guard isWritable else { throw ErrorNumber(rawValue: EBUSY) }
    try FreeBlocks.giveBack(of: data, except: present)
    state.withLock { $0.blocks[dataID]?.noteSettled() }
  }
}
