import ExtentRecord
import Glibc
import LinuxSystem

/// An entry's directory and its record, opened read-only.
struct StoredFiles {
  let directory: Descriptor
  let header: RecordHeader
  let log: LogReader

  /// The files of a key.
  enum Opening {
    case found(StoredFiles)
    /// Like the cases of ``StoredHead``.
    case damaged, laterFormat, missing
  }

  /// Opens the files of `key` below the directory `v1/files`.
  static func open(_ key: CacheKey, in files: Descriptor) throws(ErrorNumber) -> Opening {
    let directory: Descriptor
    let record: Descriptor
    do throws(ErrorNumber) {
      let prefix = try SystemCalls.openDirectory(key.prefixName, in: files.rawValue)
      directory = try SystemCalls.openDirectory(key.restName, in: prefix.rawValue)
      record = try openForReading(RecordFile.name, in: directory)
    } catch {
      if error.rawValue == ENOENT { return .missing }
      // A name is not the regular file or directory that it should be.
      if [ELOOP, ENOTDIR, ENXIO].contains(error.rawValue) { return .damaged }
      throw error
    }
    let status = try SystemCalls.status(record.rawValue)
    guard isOwn(status) else { return .damaged }
    guard let (header, log) = try Recovery.header(of: record, byteCount: status.byteCount),
      header.key == key
    else {
      return try Recovery.isOfLaterFormat(record) ? .laterFormat : .damaged
    }
    return .found(StoredFiles(directory: directory, header: header, log: log))
  }

  /// The data file; nil if it is missing, or if the cache has not written it.
  func openData() throws(ErrorNumber) -> Descriptor? {
    do throws(ErrorNumber) {
      let data = try Self.openForReading(header.dataName, in: directory)
      return Self.isOwn(try SystemCalls.status(data.rawValue)) ? data : nil
    } catch {
      if [ENOENT, ELOOP, ENXIO].contains(error.rawValue) { return nil }
      throw error
    }
  }

  /// The size of the data file, without opening it; nil if it is missing, or if the cache has not
  /// written it.
  func dataByteCount() throws(ErrorNumber) -> Int64? {
    do throws(ErrorNumber) {
      let status = try SystemCalls.status(header.dataName, in: directory.rawValue)
      return Self.isOwn(status) ? status.byteCount : nil
    } catch {
      if error.rawValue == ENOENT { return nil }
      throw error
    }
  }

  /// Never waits, even for a FIFO.
  private static func openForReading(
    _ name: String, in directory: Descriptor
  ) throws(ErrorNumber) -> Descriptor {
    try SystemCalls.open(name, in: directory.rawValue, flags: O_RDONLY | O_NONBLOCK)
  }

  private static func isOwn(_ status: FileMetadata) -> Bool {
    status.isRegularFile && status.owner == ProcessCalls.effectiveUserID
  }
}
