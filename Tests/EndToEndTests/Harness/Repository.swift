import Foundation

/// The repository that contains these tests.
enum Repository {
  /// Its top directory.
  static let directory = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path

  /// The text of a file, named relative to the top.
  static func text(of path: String) throws -> String {
    try String(contentsOfFile: "\(directory)/\(path)", encoding: .utf8)
  }

  /// The paths of all Swift files below a directory, relative to it.
  static func swiftFiles(below path: String) throws -> [String] {
    guard let files = FileManager.default.enumerator(atPath: "\(directory)/\(path)") else {
      throw HarnessError("no directory '\(path)'")
    }
    return files.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }
  }
}
