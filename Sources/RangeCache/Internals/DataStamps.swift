import ExtentRecord
import LinuxSystem

/// The stamps of data files, which later show whether something has changed them.
struct DataStamps: Sendable {
  /// The identifier of the current boot, which stamps include; nil if the file system does not
  /// maintain the times that stamps need.
  ///
  /// Without it, no stamp is written or trusted.
  let bootID: String?

  init(bootID: String?, in root: CacheRoot) {
    self.bootID = FileSystemCalls.keepsChangeTimes(root.files.rawValue) ? bootID : nil
  }

  /// The current stamp of a data file; nil if the file system cannot show changes.
  func stamp(of data: Descriptor) -> FileFingerprint? {
    bootID == nil ? nil : SystemCalls.stamp(data.rawValue)
  }

  /// The form of a stamp in a record with the salt `salt`.
  func digest(of stamp: FileFingerprint, salt: UInt64) -> UInt64? {
    bootID.map { stamp.digest(bootID: $0, salt: salt) }
  }

  /// Whether `recorded`, the stamp in a record with the salt `salt`, matches the data file's
  /// current stamp.
  func isCurrent(_ recorded: UInt64, _ stamp: FileFingerprint?, salt: UInt64) -> Bool {
    guard recorded != 0, let stamp else { return false }
    return digest(of: stamp, salt: salt) == recorded
  }

  /// Invalidates every stamp of a data file whose bytes are wrong though no program has written
  /// them.
  static func invalidateFingerprint(_ data: Descriptor) {
    // Every change of the inode has this effect; this one changes nothing else.
    try? SystemCalls.setPermissions(data.rawValue, to: 0o600)
  }
}
