import Glibc
import LinuxSystem
import OriginContent

/// The source of a resource's bytes.
enum ContentSource {
  /// A response without bytes of a resource.
  case none
  case generated(seed: UInt64)
  case file(OpenFile)

  /// Fills the buffer with bytes of a version from `offset` on; false if there are none.
  func read(into buffer: UnsafeMutableRawBufferPointer, version: UInt64, offset: Int64) -> Bool {
    switch self {
    case .none: return false
    case .generated(let seed):
      OriginContent.fill(buffer, seed: seed, version: version, offset: offset)
      return true
    case .file(let file): return file.read(into: buffer, version: version, offset: offset)
    }
  }
}

/// The directory whose files are served.
struct FileRoot: Sendable {
  let path: String

  /// Fails if the path is not a directory.
  init(path: String) throws(FailedOperation) {
    var status = stat()
    guard stat(path, &status) == 0 else { throw FailedOperation("use the root \(path)") }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      throw FailedOperation("use the root \(path)", ErrorNumber(rawValue: ENOTDIR))
    }
    self.path = path
  }

  /// Opens a regular file below the root; nil if it does not exist.
  ///
  /// A name with a `..` or a NUL is refused. Symbolic links are followed.
  func open(_ name: some StringProtocol) -> OpenFile? {
    let components = name.split(separator: "/")
    guard !components.contains(".."), !name.utf8.contains(0) else { return nil }
    return OpenFile(path: path + "/" + components.joined(separator: "/"))
  }
}

/// A file that is being served; closed with its last reference.
final class OpenFile {
  let resource: Resource
  private let descriptor: Int32

  init?(path: String) {
    // Does not wait for a writer if it is a FIFO.
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      return nil
    }
    self.descriptor = descriptor
    resource = .file(
      length: Int64(status.st_size),
      modified: Self.nanoseconds(status.st_mtim),
      inodeNumber: UInt64(status.st_ino))
  }

  /// Nanoseconds since 1970, of a time within about 280 years of it.
  private static func nanoseconds(_ time: timespec) -> Int64 {
    let seconds = max(-9_000_000_000, min(Int64(time.tv_sec), 9_000_000_000))
    return seconds * 1_000_000_000 + Int64(time.tv_nsec)
  }

  deinit { close(descriptor) }

  /// Reads a version of the file.
  ///
  /// Version 1 is the file itself. In other versions, each bit of `version - 1` flips that bit of
  /// every byte.
  ///
  /// Returns false if the file ends early or cannot be read (pread(2)).
  func read(into buffer: UnsafeMutableRawBufferPointer, version: UInt64, offset: Int64) -> Bool {
    var position = 0
    while position < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[position...])
      let count = pread(descriptor, rest.baseAddress, rest.count, off_t(offset) + position)
      if count > 0 {
        position += count
      } else if count == 0 || errno != EINTR {
        return false
      }
    }
    let mask = UInt8(truncatingIfNeeded: version &- 1)
    if mask != 0 {
      for index in buffer.indices { buffer[index] ^= mask }
    }
    return true
  }
}
