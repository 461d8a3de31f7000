import Foundation

/// A directory for one test, which is removed with its content when the test releases it.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    // In memory where possible: thousands of recoveries that sync each would wait for a disk.
    let isInMemory = FileManager.default.isWritableFile(atPath: "/dev/shm")
    let parent = isInMemory ? "/dev/shm" : FileManager.default.temporaryDirectory.path
    path = parent + "/httpfs-fuzz-" + UUID().uuidString
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }
}
