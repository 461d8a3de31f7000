import ExtentRecord
import Glibc
import LinuxSystem

/// The directory of an entry, whether or not it exists.
struct EntryFolder: Sendable {
  let key: CacheKey
  private let root: CacheRoot

  init(_ key: CacheKey, in root: CacheRoot) {
    self.key = key
    self.root = root
  }

  /// Its path, for people.
  var path: String { Self.path(of: key, in: root.path) }

  /// The path of the directory of `key` below the cache directory `path`.
  static func path(of key: CacheKey, in path: String) -> String {
    [path, CacheRoot.versionName, CacheRoot.filesName, key.prefixName, key.restName]
      .joined(separator: "/")
  }

  // MARK: Directories

  func open() throws(ErrorNumber) -> Descriptor {
    let prefix = try openPrivate(key.prefixName, in: root.files)
    return try openPrivate(key.restName, in: prefix)
  }

  /// Opens a directory of the cache; tightens its mode to 0700.
  private func openPrivate(
    _ name: String, in parent: Descriptor
  ) throws(ErrorNumber) -> Descriptor {
    let directory = try SystemCalls.openDirectory(name, in: parent.rawValue)
    if try SystemCalls.status(directory.rawValue).permissions & 0o077 != 0 {
      // On a read-only file system the mode stays as it is; the root of the cache protects the
      // directory.
      try? SystemCalls.setPermissions(directory.rawValue, to: 0o700)
    }
    return directory
  }

  func make() throws(CacheError) -> Descriptor {
    let path = path
    let prefix = try PrivateDirectory.open(key.prefixName, creatingIn: root.files, path: path)
    return try PrivateDirectory.open(key.restName, creatingIn: prefix, path: path)
  }

  /// Waits until the directory entries that lead to the entry are on the disk.
  func syncNames() throws(ErrorNumber) {
    let prefix = try SystemCalls.openDirectory(key.prefixName, in: root.files.rawValue)
    let entry = try SystemCalls.openDirectory(key.restName, in: prefix.rawValue)
    for directory in [entry, prefix, root.files] { try SystemCalls.sync(directory.rawValue) }
  }

  /// Marks the entry as used now, in one system call: a mount does it for each file that it knows.
  func touch() {
    try? SystemCalls.touch("\(key.prefixName)/\(key.restName)", in: root.files.rawValue)
  }

  // MARK: Record

  /// Opens the record file for appending.
  ///
  /// It is nil if the file is missing, or has another salt and therefore belongs to another entry
  /// object.
  func openRecord(salt: UInt64) throws(CacheError) -> Descriptor? {
    do throws(ErrorNumber) {
      let directory = try open()
      let record = try SystemCalls.openFile(RecordFile.name, in: directory.rawValue)
      let isSame = try Recovery.header(of: record)?.header.salt == salt
      return isSame ? record : nil
    } catch {
      if error.rawValue == ENOENT { return nil }
      throw CacheError(error, path: path)
    }
  }

  /// Replaces a record file by a copy of it, which is on the disk when this returns.
  ///
  /// - Parameters:
  ///   - record: the record file, open.
  ///   - recordCount: the number of records to copy from its log.
  /// - Returns: the copy, open for more records; nil if the file no longer holds that many.
  /// - Throws: the error of the file system. The record is then the old one, or the copy.
  func copyRecord(
    _ record: Descriptor, recordCount: UInt64
  ) throws(ErrorNumber) -> Descriptor? {
    guard let found = try Recovery.header(of: record), let header = found.header.encoded(),
      header.count == found.byteCount
    else { return nil }
    let salt = found.header.salt
    let log = LogReader(descriptor: record, start: Int64(found.byteCount), salt: salt)
    guard try log.read({ _, _ in }).recordCount >= recordCount else { return nil }
    return try RecordFile.replace(header: header, salt: salt, in: open(), isDurable: true) {
      (file) throws(ErrorNumber) in
      _ = try log.read { (sequence, record) throws(ErrorNumber) in
        if sequence <= recordCount { try file.append(record) }
      }
    }.descriptor
  }

  // MARK: Removal

  /// Deletes the entry; returns the number of bytes that its files occupied, 0 if there is none.
  ///
  /// It deletes the record first, so that the files that a crash leaves are not an entry.
  ///
  /// - Throws: if the entry cannot be opened, for example because no descriptor is left.
  func delete() throws(CacheError) -> Int64 {
    let prefix: Descriptor
    let directory: Descriptor
    do throws(ErrorNumber) {
      prefix = try SystemCalls.openDirectory(key.prefixName, in: root.files.rawValue)
      directory = try SystemCalls.openDirectory(key.restName, in: prefix.rawValue)
    } catch {
      if error.rawValue == ENOENT { return 0 }
      throw CacheError(error, path: path)
    }
    let before = StoredEntry.allocatedByteCount(in: directory)
    try? SystemCalls.unlink(RecordFile.name, in: directory.rawValue)
    Self.removeFiles(in: directory, keeping: nil)
    let after = StoredEntry.allocatedByteCount(in: directory)
    // Fails, as it should, if the directory holds files that the cache did not write.
    try? SystemCalls.removeDirectory(key.restName, in: prefix.rawValue)
    return max(0, before - after)
  }

  /// Deletes the record alone; returns the number of bytes that it occupied, 0 if there is none.
  func deleteRecord() throws(CacheError) -> Int64 {
    do throws(ErrorNumber) {
      let directory = try open()
      let record = try SystemCalls.status(RecordFile.name, in: directory.rawValue)
      try SystemCalls.unlink(RecordFile.name, in: directory.rawValue)
      return record.allocatedByteCount
    } catch {
      if error.rawValue == ENOENT { return 0 }
      throw CacheError(error, path: path)
    }
  }

  /// Removes the directory that groups entries, if this was the last of them.
  func removeGroup() {
    // Fails, as it should, while the directory holds other entries.
    try? SystemCalls.removeDirectory(key.prefixName, in: root.files.rawValue)
  }

  /// Removes the files that an entry's record does not name; returns the number of bytes that they
  /// occupied.
  ///
  /// These are data files other than `dataName`, and unfinished records. The names in `directory`
  /// were not read before.
  @discardableResult
  static func removeFiles(in directory: Descriptor, keeping dataName: String?) -> Int64 {
    var freed: Int64 = 0
    for name in (try? SystemCalls.names(inFresh: directory.rawValue)) ?? [] {
      guard name.hasPrefix(RecordFile.dataPrefix) || name.hasPrefix(RecordFile.temporaryPrefix),
        name != dataName
      else { continue }
      let status = try? SystemCalls.status(name, in: directory.rawValue)
      do throws(ErrorNumber) {
        try SystemCalls.unlink(name, in: directory.rawValue)
        freed += status?.allocatedByteCount ?? 0
      } catch {
        // The file stays an orphan until the entry is opened or evicted.
      }
    }
    return freed
  }
}
