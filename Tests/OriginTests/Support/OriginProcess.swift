import Foundation
import Glibc

/// The built `Origin` as a child process on a free port.
final class OriginProcess {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  let port: UInt16
  private let process = Process()

  /// Starts the program, with a script if one is given, and waits until it listens.
  ///
  /// - Throws: ``Failure`` if the program is not built or does not listen.
  init(script: String? = nil) throws {
    let program = try Self.program
    process.executableURL = URL(fileURLWithPath: program)
    var scriptPath: String?
    if let script {
      let path = NSTemporaryDirectory() + "/origin-script-\(UUID().uuidString).json"
      try script.write(toFile: path, atomically: true, encoding: .utf8)
      process.arguments = ["--script", path]
      scriptPath = path
    }
    defer { if let scriptPath { unlink(scriptPath) } }
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    // The line arrives at once, or the output of a process that could not start ends.
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    let number = line.split(separator: ":").last.flatMap { UInt16($0.dropLast()) }
    guard let number else {
      process.terminate()
      process.waitUntilExit()
      throw Failure(description: "Origin did not start: it said '\(line)'")
    }
    port = number
  }

  deinit {
    process.terminate()
    process.waitUntilExit()
  }

  /// Sends a control message, and returns the status and the body.
  func control(_ json: String) throws -> String {
    try RawClient(port: port).exchange(
      "POST /control HTTP/1.1\r\nHost: o\r\nConnection: close\r\n"
        + "Content-Length: \(json.utf8.count)\r\n\r\n\(json)")
  }

  /// The number of the process's threads (proc(5)).
  var threadCount: Int {
    let path = "/proc/\(process.processIdentifier)/task"
    return (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
  }

  /// Searches `HTTPFS_BIN_DIR`, then the directory of the test program, where SwiftPM puts all
  /// products.
  private static var program: String {
    get throws {
      var directories: [String] = []
      if let directory = ProcessInfo.processInfo.environment["HTTPFS_BIN_DIR"] {
        directories.append(directory)
      }
      if let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      {
        directories.append((program as NSString).deletingLastPathComponent)
      }
      directories.append((Bundle.main.bundlePath as NSString).deletingLastPathComponent)
      directories.append(Bundle.main.bundlePath)
      for directory in directories where access("\(directory)/Origin", X_OK) == 0 {
        return "\(directory)/Origin"
      }
      throw Failure(description: "no program 'Origin' in \(directories); build it first")
    }
  }
}
