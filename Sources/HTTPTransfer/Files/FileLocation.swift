internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore

/// A failure of the destination, before it is known of which transfer.
struct FileFailure: Error {
  let code: TransferError.Code
  let reason: String
  let errno: CInt
}

/// Where a file is to be: its directory, held open, and the names in it.
struct FileLocation: Sendable {
  let path: String
  let name: String
  let directory: Descriptor

  /// The longest name that Linux file systems take, in bytes.
  private static let nameLimit = 255

  /// What the names of a partial file add, the temporary name of its record included.
  private static let longestSuffix = ".httpfs-part.record-0123456789abcdef".utf8.count

  /// Finds the place.
  ///
  /// - Parameters:
  ///   - path: where the file is to be.
  ///   - creatingMissing: whether the directories that lead to it are created.
  /// - Throws: where nothing could be created there: a directory of that name, a device, no
  ///   permission.
  init(path: String, creatingMissing: Bool = true) throws(FileFailure) {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw FileFailure(code: .destination, reason: "the destination has no name", errno: ENOENT)
    }
    guard !path.hasSuffix("/") else {
      throw FileFailure(
        code: .destination, reason: "'\(path)' names a directory; name a file in it", errno: EISDIR)
    }
    // What a symbolic link leads to is replaced, not the link.
    let resolved = Self.target(ofLink: path) ?? path
    let parts = resolved.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
    guard let name = parts.last, name != ".", name != ".." else {
      throw FileFailure(
        code: .destination, reason: "'\(path)' names a directory; name a file in it", errno: EISDIR)
    }
    guard name.utf8.count <= Self.nameLimit else {
      throw FileFailure(
        code: .destination,
        reason: "the name of '\(path)' is longer than 255 bytes; choose another",
        errno: ENAMETOOLONG)
    }
    // Two downloads of one command could meet there, and one get the bytes of the other.
    guard !name.hasSuffix(".httpfs-part"), !name.contains(".httpfs-part.record") else {
      throw FileFailure(
        code: .destination,
        reason: "'\(path)' has the name of a partial file; choose another", errno: EINVAL)
    }
    self.path = path
    self.name = name
    let parent = (resolved.hasPrefix("/") ? "/" : "") + parts.dropLast().joined(separator: "/")
    do throws(ErrorNumber) {
      directory = try SystemCalls.openDirectory(
        atPath: parent.isEmpty ? "." : parent, creatingMissing: creatingMissing)
    } catch {
      throw FileFailure(
        code: .destination,
        reason: "cannot use the directory of '\(path)': \(SystemCalls.text(of: error.rawValue))",
        errno: error.rawValue)
    }
    try check()
  }

  /// Refuses what could be neither created nor replaced, before anything is fetched.
  private func check() throws(FileFailure) {
    do throws(ErrorNumber) {
      let status = try SystemCalls.status(name, in: directory.rawValue)
      if status.isDirectory { throw ErrorNumber(rawValue: EISDIR) }
      guard status.isRegularFile else { throw ErrorNumber(rawValue: EINVAL) }
    } catch {
      switch error.rawValue {
      case ENOENT: break
      case EISDIR:
        throw FileFailure(
          code: .destination, reason: "'\(path)' is a directory; name a file in it", errno: EISDIR)
      case EINVAL:
        throw FileFailure(
          code: .destination, reason: "'\(path)' is not a regular file; it cannot be replaced",
          errno: EINVAL)
      default: throw failure("cannot look at '\(path)'", error)
      }
    }
    do throws(ErrorNumber) {
      try SystemCalls.checkWritable(directory.rawValue)
    } catch {
      throw failure("cannot create '\(path)'", error)
    }
  }

  // MARK: Names

  /// The name of the file while it is not whole.
  var partName: String { stem + ".httpfs-part" }

  /// The name of the record beside it.
  var recordName: String { stem + ".httpfs-part.record" }

  var partPath: String { parentPrefix + partName }
  var recordPath: String { parentPrefix + recordName }

  private var parentPrefix: String {
    path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
  }

  /// The name, or as much of it as leaves room, with a hash in place of the rest.
  private var stem: String {
    guard name.utf8.count + Self.longestSuffix > Self.nameLimit else { return name }
    var cut = name
    while cut.utf8.count > 160 { cut.removeLast() }
    return cut + "-" + CacheKey(name).hex.prefix(16)
  }

  // MARK: Facts

  /// The permission bits of the file that is there already; nil where there is none.
  func permissionsOfExistingFile() throws(ErrorNumber) -> mode_t? {
    do throws(ErrorNumber) {
      return try SystemCalls.status(name, in: directory.rawValue).permissions
    } catch {
      if error.rawValue == ENOENT { return nil }
      throw error
    }
  }

  /// The bytes that can be written there; nil where the file system does not tell.
  var availableByteCount: Int64? { SystemCalls.space(directory.rawValue)?.available }

  var inUse: FileFailure {
    FileFailure(
      code: .destinationInUse,
      reason:
        "'\(partPath)' is being written by another transfer; wait for it or choose another name",
      errno: EBUSY)
  }

  var wasReplaced: FileFailure {
    FileFailure(
      code: .destination,
      reason: "'\(partPath)' was removed or replaced while it was written; start again",
      errno: ESTALE)
  }

  func failure(_ action: String, _ error: ErrorNumber) -> FileFailure {
    var reason = "\(action): \(SystemCalls.text(of: error.rawValue))"
    if [ENOSPC, EDQUOT].contains(error.rawValue) { reason += "; free some space and try again" }
    return FileFailure(code: .destination, reason: reason, errno: error.rawValue)
  }

  /// What a symbolic link leads to; nil where `path` is none.
  private static func target(ofLink path: String) -> String? {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK,
      let real = realpath(path, nil)
    else { return nil }
    defer { free(real) }
    return String(cString: real)
  }
}
