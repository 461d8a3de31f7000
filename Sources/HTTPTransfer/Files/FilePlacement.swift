internal import Glibc
internal import LinuxSystem

/// Gives a finished download its name, and the permissions of what it replaces.
struct FilePlacement {
  let location: FileLocation

  /// What a finished download may take the place of.
  enum Replacement: Sendable {
    case nothing
    /// This file, as long as nobody changes it.
    case result(EarlierResult)
    case anything
  }

  /// Gives the partial file its permissions and its name, in one step.
  ///
  /// - Throws: `EEXIST` where the name is taken by what may not be replaced, however late it came; `ESTALE`
  ///   where the name of the partial file was another one's, and perhaps this name is now.
  func place(_ file: Descriptor, replacing replaced: Replacement) throws(ErrorNumber) {
    // As late as can be: others may not write what is to be gone on with.
    try setPermissions(of: file, replacing: replaced)
    try check(file, has: location.partName)
    try rename(file, replacing: replaced)
    // Whoever may write the directory may have changed it between the two.
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
        // The old file is checked after it has lost its name: nobody can open it by name now.
        try SystemCalls.exchange(partName, with: name, in: directory)
      } catch {
        // Somebody has removed it.
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
      // What its owner has done to its permissions until nobody could find it any more.
      try? setPermissions(of: file, replacing: replaced)
      // The new file has its name already.
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
    // A file system that can do neither is asked at the last moment.
    guard (try? SystemCalls.status(name, in: directory)) == nil else {
      throw ErrorNumber(rawValue: EEXIST)
    }
    try SystemCalls.rename(partName, to: name, in: directory)
  }

  private static func isUnsupported(_ error: ErrorNumber) -> Bool {
    [EINVAL, ENOSYS, EPERM, EOPNOTSUPP].contains(error.rawValue)
  }
}
