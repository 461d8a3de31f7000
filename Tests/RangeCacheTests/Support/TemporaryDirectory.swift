import Foundation

/// A directory for one test, which is removed with its content when the test releases it.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    // In memory where possible: thousands of recoveries that sync each would wait for a disk.
    let isInMemory = FileManager.default.isWritableFile(atPath: "/dev/shm")
    let parent = isInMemory ? "/dev/shm" : FileManager.default.temporaryDirectory.path
    path = parent + "/rangecache-tests-" + UUID().uuidString
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  /// The paths of all files below the directory whose name satisfies `isIncluded`, sorted.
  func files(where isIncluded: (String) -> Bool = { _ in true }) -> [String] {
    let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
    return names.map { path + "/" + $0 }.filter {
      isIncluded(String($0.split(separator: "/").last ?? ""))
    }.sorted()
  }

  /// The only record file below the directory.
  func recordPath() throws -> String { try only(files { $0 == "record" }) }

  /// The only data file below the directory.
  func dataPath() throws -> String { try only(files { $0.hasPrefix("data-") }) }

  private func only(_ paths: [String]) throws -> String {
    guard paths.count == 1, let path = paths.first else { throw NotOneFile(paths: paths) }
    return path
  }

  struct NotOneFile: Error {
    let paths: [String]
  }
}

/// The permission bits of a file.
func permissions(of path: String) throws -> Int {
  let attributes = try FileManager.default.attributesOfItem(atPath: path)
  return (attributes[.posixPermissions] as? Int) ?? -1
}

func readFile(_ path: String) throws -> [UInt8] {
  Array(try Data(contentsOf: URL(filePath: path)))
}

/// Replaces a file's contents in place.
func writeFile(_ path: String, _ bytes: [UInt8]) throws {
  try Data(bytes).write(to: URL(filePath: path))
}
