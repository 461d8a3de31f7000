package import CLinux
package import Glibc

/// Changes and lists the names of one directory.
extension SystemCalls {
  /// `mkdirat(2)`, with mode 0700 by default; false if the name already exists.
  package static func makeDirectory(
    _ name: String, in directory: CInt, permissions: mode_t = 0o700
  ) throws(ErrorNumber) -> Bool {
    do throws(ErrorNumber) {
      _ = try checked { Glibc.mkdirat(directory, name, permissions) }
      return true
    } catch {
      if error.rawValue == EEXIST { return false }
      throw error
    }
  }

  /// `renameat(2)` within one directory.
  package static func rename(
    _ name: String, to newName: String, in directory: CInt
  ) throws(ErrorNumber) {
    _ = try checked { Glibc.renameat(directory, name, directory, newName) }
  }

  /// Renames a file within one directory; `EEXIST` if the new name is taken (`renameat2(2)`).
  package static func renameToFreeName(
    _ name: String, to newName: String, in directory: CInt
  ) throws(ErrorNumber) {
    _ = try checked { httpfs_rename_to_free_name(directory, name, newName) }
  }

  /// Exchanges the names of two files of one directory (`renameat2(2)`).
  package static func exchange(
    _ name: String, with other: String, in directory: CInt
  ) throws(ErrorNumber) {
    _ = try checked { httpfs_exchange_names(directory, name, other) }
  }

  /// `linkat(2)` within one directory; `EEXIST` if the new name is taken.
  package static func link(
    _ name: String, as newName: String, in directory: CInt
  ) throws(ErrorNumber) {
    _ = try checked { Glibc.linkat(directory, name, directory, newName, 0) }
  }

  /// `unlinkat(2)`.
  package static func unlink(_ name: String, in directory: CInt) throws(ErrorNumber) {
    _ = try checked { Glibc.unlinkat(directory, name, 0) }
  }

  /// `unlinkat(2)` with `AT_REMOVEDIR`: removes an empty directory.
  package static func removeDirectory(_ name: String, in directory: CInt) throws(ErrorNumber) {
    _ = try checked { Glibc.unlinkat(directory, name, AT_REMOVEDIR) }
  }

  /// The names in a directory, without `.` and `..` and without names that are not UTF-8
  /// (`fdopendir(3)`, `readdir(3)`).
  package static func names(in directory: CInt) throws(ErrorNumber) -> [String] {
    // Uses a descriptor of its own, because the stream owns it and moves its file offset.
    try names(
      inOwned: checked {
        Glibc.openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
      })
  }

  /// The same, of a directory that the caller has just opened and nobody else reads
  /// (`getdents64(2)`): with a third of the system calls.
  package static func names(inFresh directory: CInt) throws(ErrorNumber) -> [String] {
    var names: [String] = []
    var entries = [UInt8](repeating: 0, count: 4096)
    while true {
      let byteCount = try checked {
        httpfs_read_directory(directory, &entries, UInt(entries.count))
      }
      guard byteCount > 0 else { return names }
      var offset = 0
      while offset < byteCount {
        // Inode number, offset, length of the entry, type, name.
        let length = Int(entries[offset + 16]) | Int(entries[offset + 17]) << 8
        let name = String(
          validating: entries[(offset + 19)..<(offset + length)].prefix { $0 != 0 }, as: UTF8.self)
        if let name, name != ".", name != ".." { names.append(name) }
        offset += length
      }
    }
  }

  /// Takes over the descriptor of the directory.
  static func names(inOwned directory: CInt) throws(ErrorNumber) -> [String] {
    guard let stream = fdopendir(directory) else {
      let error = ErrorNumber.last
      Descriptor.close(directory)
      throw error
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw ErrorNumber(rawValue: errno) }
        return names
      }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if let name, name != ".", name != ".." { names.append(name) }
    }
  }
}
