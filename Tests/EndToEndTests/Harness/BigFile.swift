import Foundation
import Glibc
import Synchronization

/// The file of 1 GiB that several suites serve by nginx, created once in a run.
struct BigFile {
  static let byteCount: Int64 = 1 << 30
  static let seed: UInt64 = 0xB16
  static let name = "big.bin"

  /// The directory that holds the file alone.
  let directory: String
  let sha256: String

  private static let shared = Mutex<BigFile?>(nil)

  /// Creates the file at the first call.
  static func make() throws -> BigFile {
    try shared.withLock { shared in
      if let file = shared { return file }
      let directory = try TemporaryDirectory.make("big")
      try TestContent.write(to: "\(directory)/\(name)", seed: seed, byteCount: byteCount)
      let sha256 = Digest.ofContent(seed: seed, byteCount: byteCount)
      let file = BigFile(directory: directory, sha256: sha256)
      shared = file
      atexit { BigFile.remove() }
      return file
    }
  }

  private static func remove() {
    shared.withLock { shared in
      if let file = shared { try? FileManager.default.removeItem(atPath: file.directory) }
      shared = nil
    }
  }
}
