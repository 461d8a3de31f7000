internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Learns the length of a version that was opened without one, and records it for later mounts.
struct LengthRecorder: Sendable {
  let owner: RemoteVersion

  /// Records that a body of unknown length, and with it the file, has ended at `position`; runs
  /// on the storage queue.
  ///
  /// - Returns: why the file cannot end there; nil if it can.
  func ended(at position: Int64) -> FileError? {
    let wasKnown = owner.length != nil
    var failure: FileError?
    owner.change { failure = $0.ended(at: position, into: &$1) }
    // Not here: the disk may hang.
    if !wasKnown, failure == nil { owner.environment.storage.perform { [self] in record() } }
    return failure
  }

  /// Takes the length from the head of a response of this version, if it was unknown.
  func learn(length: Int64?) {
    // Without a validator, nothing proves that the head belongs to these bytes.
    guard let length, owner.content.strength != .unverifiable else { return }
    var isNew = false
    owner.change {
      isNew = $0.learn(length: length, into: &$1)
      if isNew { $0.plan(now: .now, into: &$1) }
    }
    if isNew { owner.environment.storage.perform { [self] in record() } }
  }

  /// Records the length for later mounts; runs on the storage queue.
  func record() {
    guard let length = owner.length else { return }
    do throws(CacheError) {
      try owner.loader.bring(create: false)
      guard let entry = owner.state.withLock({ $0.entry }) else { return }
      // The watch closes the entry when it is idle.
      owner.requestWatch()
      try entry.recordCompleteLength(length)
    } catch {
      owner.environment.logger.warning(
        "cannot record the length",
        metadata: ["file": "\(owner.file.source.path)", "error": "\(error)"])
    }
  }
}

extension RemoteVersion {
  /// The recorder of the version's length.
  var lengthRecorder: LengthRecorder { LengthRecorder(owner: self) }
}
