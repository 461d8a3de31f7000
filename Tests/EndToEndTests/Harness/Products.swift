import Foundation
import Glibc

/// The built programs under test.
enum Products {
  /// The path of `httpfs`.
  static var httpfs: String { get throws { try path(of: "httpfs") } }

  /// The path of `Origin`.
  static var origin: String { get throws { try path(of: "Origin") } }

  /// Finds a program.
  ///
  /// It searches `HTTPFS_BIN_DIR`, then the directory of the test program, where SwiftPM puts all
  /// products of a build, then the package's own build directory.
  private static func path(of name: String) throws -> String {
    var directories: [String] = []
    if let directory = ProcessInfo.processInfo.environment["HTTPFS_BIN_DIR"] {
      directories.append(directory)
    }
    if let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") {
      directories.append(parent(of: program))
    }
    directories.append(parent(of: Bundle.main.bundlePath))
    directories.append(Bundle.main.bundlePath)
    let package = parent(of: parent(of: parent(of: parent(of: #filePath))))
    directories += ["\(package)/.build/release", "\(package)/.build/debug"]
    for directory in directories {
      let candidate = "\(directory)/\(name)"
      if access(candidate, X_OK) == 0 { return candidate }
    }
    throw HarnessError(
      "no program '\(name)' in \(directories.joined(separator: ", ")); "
        + "run `swift build` or set HTTPFS_BIN_DIR")
  }

  private static func parent(of path: String) -> String {
    (path as NSString).deletingLastPathComponent
  }
}
