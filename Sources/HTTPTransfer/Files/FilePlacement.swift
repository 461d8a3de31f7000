internal import Glibc
internal import LinuxSystem

/// Gives a finished download its name, and the permissions of the file that it replaces.
struct FilePlacement {
  let location: FileLocation

  /// The file that a finished download may replace.
  enum Replacement: Sendable {
    case nothing
    /// This file, as long as it is not changed.
    case result(EarlierResult)
    case anything
  }

  /// Gives the partial file its permissions and its name, in one step.
  ///
  /// - Throws: `EEXIST` if the name is taken by a file that must not be replaced, however late it
  ///   appeared; `ESTALE` if the name of the partial file belonged to another file, which may now
  ///   have this name.
  func place(_ file: Descriptor, replacing replaced: Replacement) throws(ErrorNumber) {
    // Do this as late as possible: other users must not write a file that may still be resumed.
    try setPermissions(of: file, replacing: replaced)
    try check(file, has: location.partName)
    try rename(file, replacing: replaced)
    // Another writer of the directory may have changed it between the two calls.
    try check(file, has: location.name)
  }

  private func check(_ file: Descriptor, has name: String) throws(ErrorNumber) {
    guard try SystemCalls.isSameFile(file.rawValue, name, in: location.directory.rawValue) else {
      throw ErrorNumber(rawValue: ESTALE)
    }
  }

  private func rename(
    _ file: Descriptor, replacing replaced: Replacement
  ) throws(ErrorNumber) {
    let (name, partName) = (location.name, location.partName)
    let directory = location.directory.rawValue
    switch replaced {
    case .anything: try SystemCalls.rename(partName, to: name, in: directory)
    case .nothing: try placeAtFreeName()
    case .result(let result):
      do throws(ErrorNumber) {
        // The old file is checked after it has lost its name, when it can no longer be opened by
        // that.
        try SystemCalls.exchange(partName, with: name, in: directory)
      } catch {
        // Another process has removed it.
        if error.rawValue == ENOENT { return try placeAtFreeName() }
        guard Self.isUnsupported(error) else { throw error }
        guard result.isUntouched(as: name, in: location.directory) else {
          throw ErrorNumber(rawValue: EEXIST)
        }
        return try SystemCalls.rename(partName, to: name, in: directory)
      }
      let isPlaced = (try? SystemCalls.isSameFile(file.rawValue, name, in: directory)) == true
      guard isPlaced, result.isUntouched(as: partName, in: location.directory) else {
        try SystemCalls.exchange(partName, with: name, in: directory)
        throw ErrorNumber(rawValue: isPlaced ? EEXIST : ESTALE)
      }
      // Its owner may have changed its permissions until it lost its name.
      try? setPermissions(of: file, replacing: replaced)
      // The new file already has its name.
      try? SystemCalls.unlink(partName, in: directory)
    }
  }

  private func placeAtFreeName() throws(ErrorNumber) {
    let (name, partName) = (location.name, location.partName)
    let directory = location.directory.rawValue
    do throws(ErrorNumber) {
      return try SystemCalls.renameToFreeName(partName, to: name, in: directory)
    } catch {
      guard Self.isUnsupported(error) else { throw error }
    }
    do throws(ErrorNumber) {
      try SystemCalls.link(partName, as: name, in: directory)
      return try SystemCalls.unlink(partName, in: directory)
    } catch {
      guard Self.isUnsupported(error) else { throw error }
    }
    // If the file system can do neither, check at the last moment.
    guard (try? SystemCalls.status(name, in: directory)) == nil else {
      throw ErrorNumber(rawValue: EEXIST)
    }
    try SystemCalls.rename(partName, to: name, in: directory)
  }

  private static func isUnsupported(_ error: ErrorNumber) -> Bool {
    [EINVAL, ENOSYS, EPERM, EOPNOTSUPP].contains(error.rawValue)
  }
}
