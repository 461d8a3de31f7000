import ExtentRecord
import HTTPTransferCore
import LinuxSystem

/// An entry of a cache directory, as its directory shows it; its files were not read.
package struct StoredEntry: Sendable {
  let key: CacheKey

  /// The bytes that its files occupy on the disk.
  package let allocatedByteCount: Int64

  /// The time of its last use: the modification time of its directory.
  package let lastUse: Time

  /// A moment, by the clock of the file system.
  package struct Time: Comparable, Sendable {
    /// Seconds since the beginning of 1970 in UTC.
    package let seconds: Int
    let nanoseconds: Int

    package static func < (left: Self, right: Self) -> Bool {
      (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }
  }

  /// The name of the entry: its key as 64 lower-case hexadecimal digits.
  package var name: String { key.hex }

  /// Whether its key is that of `text`.
  package func isFiled(under text: String) -> Bool { key == CacheKey(text) }

  /// Every entry below the directory `v1/files`, in no order.
  ///
  /// Ignores names that the cache does not write, and entries that disappear meanwhile.
  static func all(in files: Descriptor) throws(ErrorNumber) -> [StoredEntry] {
    var entries: [StoredEntry] = []
    for prefixName in try SystemCalls.names(in: files.rawValue) {
      guard
        let prefix = try? SystemCalls.openDirectory(prefixName, in: files.rawValue),
        let names = try? SystemCalls.names(in: prefix.rawValue)
      else { continue }
      for name in names {
        guard let key = CacheKey(prefix: prefixName, rest: name),
          let directory = try? SystemCalls.openDirectory(name, in: prefix.rawValue),
          let status = try? SystemCalls.status(directory.rawValue)
        else { continue }
        entries.append(
          StoredEntry(
            key: key, allocatedByteCount: allocatedByteCount(in: directory),
            lastUse: Time(
              seconds: status.modified.seconds, nanoseconds: status.modified.nanoseconds)))
      }
    }
    return entries
  }

  /// The bytes that the files in an entry's directory occupy.
  static func allocatedByteCount(in directory: Descriptor) -> Int64 {
    let names = (try? SystemCalls.names(in: directory.rawValue)) ?? []
    return names.reduce(0) { sum, name in
      let status = try? SystemCalls.status(name, in: directory.rawValue)
      return sum.saturatingSum(status?.allocatedByteCount ?? 0)
    }
  }
}
