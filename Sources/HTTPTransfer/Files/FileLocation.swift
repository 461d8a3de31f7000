internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import LinuxSystem

/// The place of a file: its directory, held open, and the names in it.
struct FileLocation: Sendable {
  let path: String
  let name: String
  let directory: Descriptor

  /// The maximum length of a name on Linux file systems, in bytes.
  private static let nameLimit = 255

  /// The longest suffix of a partial file's names, which is the temporary name of its record.
  private static let longestSuffix = ".httpfs-part.record-0123456789abcdef".utf8.count

  /// Resolves the path of a file.
  ///
  /// - Parameters:
  ///   - path: the path.
  ///   - base: the directory that `path` is relative to, below which no symbolic link is followed;
  ///     nil if the user gave the whole path, in which links are followed.
  ///   - creatingMissing: whether to create missing directories of the path.
  /// - Throws: if no file can be created there: a directory of that name, a device, no permission.
  init(path: String, inside base: String? = nil, creatingMissing: Bool = true) throws(FileFailure) {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw FileFailure(code: .destination, reason: "the destination has no name", errno: ENOENT)
    }
    let shown = base.map { Self.joined($0, path) } ?? path
    let place =
      if let base {
        try Self.place(path, inside: base, shown: shown, creatingMissing: creatingMissing)
      } else {
        try Self.place(path, creatingMissing: creatingMissing)
      }
    self.path = shown
    (directory, name) = place
    try check()
  }

  /// Refuses a name that no file can have, or that belongs to a partial file.
  static func check(name: String?, of path: String) throws(FileFailure) -> String {
    guard let name, name != ".", name != ".." else {
      throw FileFailure(
        code: .destination, reason: "'\(path)' names a directory; name a file in it", errno: EISDIR)
    }
    guard name.utf8.count <= nameLimit else {
      throw FileFailure(
        code: .destination,
        reason: "the name of '\(path)' is longer than 255 bytes; choose another",
        errno: ENAMETOOLONG)
    }
    // Two downloads of one command could use it, and one could get the bytes of the other.
    guard !name.hasByteSuffix(".httpfs-part"),
      !name.utf8.contains(".httpfs-part.record".utf8), !name.hasByteSuffix(".httpfs-origin")
    else {
      throw FileFailure(
        code: .destination,
        reason: "'\(path)' has the name of a partial file; choose another", errno: EINVAL)
    }
    return name
  }

  /// Refuses a destination that can be neither created nor replaced, before any request.
  ///
  /// A symbolic link at this point is not followed: it can be replaced.
  private func check() throws(FileFailure) {
    do throws(ErrorNumber) {
      let status = try SystemCalls.status(name, in: directory.rawValue)
      if status.isDirectory { throw ErrorNumber(rawValue: EISDIR) }
      guard status.isRegularFile || status.isSymbolicLink else {
        throw ErrorNumber(rawValue: EINVAL)
      }
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

  /// The name of the file while it is incomplete.
  var partName: String { stem + ".httpfs-part" }

  /// The name of the record beside the incomplete file.
  var recordName: String { stem + ".httpfs-part.record" }

  /// The name of the file that records the file's origin, if the file cannot have attributes.
  var originName: String { stem + ".httpfs-origin" }

  var partPath: String { parentPrefix + partName }
  var recordPath: String { parentPrefix + recordName }

  private var parentPrefix: String {
    path.utf8.lastIndex(of: UInt8(ascii: "/"))
      .map { String(decoding: path.utf8[...$0], as: UTF8.self) } ?? ""
  }

  /// The name; if that is too long, a prefix of it and a hash of the whole name.
  private var stem: String {
    guard name.utf8.count + Self.longestSuffix > Self.nameLimit else { return name }
    var cut = name
    while cut.utf8.count > 160 { cut.removeLast() }
    return cut + "-" + CacheKey(name).hex.prefix(16)
  }

  // MARK: Temporary names

  // They are always the same, so that the leftovers of a killed process are found.

  /// The temporary name of the record; only the holder of the partial file's lock uses it.
  var newRecordName: String { recordName + "-new" }

  /// The name of a file that is created to determine the permissions of new files.
  var probeName: String { recordName + "-mode" }

  /// The temporary name of the file ``originName``.
  var newOriginName: String { recordName + "-origin" }

  /// Removes a file that a killed process of this user left under one of these names.
  func removeLeftover(_ name: String) {
    guard let status = try? SystemCalls.status(name, in: directory.rawValue),
      status.isRegularFile, status.owner == ProcessCalls.effectiveUserID
    else { return }
    try? SystemCalls.unlink(name, in: directory.rawValue)
  }

  // MARK: Properties

  /// Throws if the name is taken.
  func checkIsFree() throws(FileFailure) {
    guard let status = try? SystemCalls.status(name, in: directory.rawValue) else { return }
    throw exists(status.isSymbolicLink ? "is a symbolic link that leads to no file" : "exists")
  }

  /// The number of bytes that can be written there; nil if the file system does not tell.
  var availableByteCount: Int64? {
    // A file system in memory without a limit reports no blocks.
    FileSystemCalls.space(directory.rawValue).flatMap { $0.total > 0 ? $0.available : nil }
  }

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
    var reason = "\(action): \(error)"
    if [ENOSPC, EDQUOT].contains(error.rawValue) { reason += "; free some space and try again" }
    return FileFailure(code: .destination, reason: reason, errno: error.rawValue)
  }

  // MARK: Failures

  /// Why a file of unknown origin is not replaced.
  var isUnknown: String { "exists, and nothing shows that it is an earlier download of this URL" }

  func exists(_ reason: String) -> FileFailure {
    FileFailure(code: .destinationExists, reason: "'\(path)' \(reason)", errno: EEXIST)
  }

  var belongsToAnother: FileFailure {
    FileFailure(
      code: .destination,
      reason: "'\(partPath)' belongs to another user; remove it or choose another name",
      errno: EPERM)
  }
}
