import ExtentRecord
import Glibc
import HTTPTransferCore
import Synchronization

/// The blocks of data files that hold nothing present; see ``DataBlocks``.
extension CacheDirectory {
  /// Counts an entry object that is open on the data file `dataID`.
  func beginUse(ofData dataID: UInt64, isNew: Bool) {
    state.withLock { state in
      let isSettled = isNew || state.settledData.contains(dataID)
      state.blocks[dataID, default: DataBlocks(isSettled: isSettled)].beginUse()
    }
  }

  /// Counts it no more; `isSynced` says whether all that it has written is known to be on the disk.
  func endUse(ofData dataID: UInt64, isSynced: Bool) {
    state.withLock { state in
      state.blocks[dataID]?.endUse(isSynced: isSynced)
      guard let blocks = state.blocks[dataID], blocks.isUnused else { return }
      state.blocks[dataID] = nil
      // Forgotten ones are settled once more.
      if state.settledData.count >= Self.greatestSettledCount { state.settledData = [] }
      if blocks.isSettled {
        state.settledData.insert(dataID)
      } else {
        state.settledData.remove(dataID)
      }
    }
  }

  private static let greatestSettledCount = 65_536

  /// Whether this process knows what became of all that it has written to the data file `dataID`.
  func isSettled(_ dataID: UInt64) -> Bool {
    state.withLock { $0.blocks[dataID]?.isSettled ?? $0.settledData.contains(dataID) }
  }

  func noteLoss(inData dataID: UInt64) { state.withLock { $0.blocks[dataID]?.noteLoss() } }

  func isWritable(_ dataID: UInt64) -> Bool {
    state.withLock { $0.blocks[dataID]?.isWritable ?? true }
  }

  /// Gives back the blocks of `data`, the data file `dataID`, that hold nothing of `present`, unless it is
  /// known that nothing was lost there; by the writer of the file.
  func settle(
    _ data: Descriptor, _ dataID: UInt64, present: ExtentSet
  ) throws(ErrorNumber) {
    guard let before = state.withLock({ $0.blocks[dataID] }), !before.isSettled else { return }
    guard before.isWritable else { throw ErrorNumber(rawValue: EBUSY) }
    try FreeBlocks.giveBack(of: data, except: present)
    state.withLock { $0.blocks[dataID]?.noteSettled(after: before) }
  }
}
