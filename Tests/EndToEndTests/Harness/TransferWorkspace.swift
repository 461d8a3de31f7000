import Foundation
import Glibc

/// A directory in which `httpfs get` and `httpfs put` run, and the files that they leave there.
final class TransferWorkspace {
  let sandbox: Sandbox
  /// The commands' working directory.
  let directory: String

  /// The environment of every command: without a user's colours, and with bars drawn in UTF-8.
  private static let environment = ["LC_ALL": "C.UTF-8", "NO_COLOR": "1"]

  /// Creates the directory in a sandbox, by default a new one.
  init(_ sandbox: Sandbox? = nil, name: String = "work") throws {
    let sandbox = try sandbox ?? Sandbox()
    self.sandbox = sandbox
    directory = try sandbox.makeDirectory(name)
  }

  // MARK: Running

  /// The command line of `httpfs` in this directory, for callers that start it in other ways.
  func commandLine(_ arguments: [String]) throws -> [String] {
    // env(1) becomes the command, so signals to the child reach the command.
    ["env", "--chdir", directory, try Products.httpfs] + arguments
  }

  /// Runs `httpfs get` to its end.
  func get(_ arguments: String..., within limit: Duration = .seconds(60)) throws -> CommandResult {
    try run(["get"] + arguments, within: limit)
  }

  /// Runs `httpfs put` to its end.
  func put(_ arguments: String..., within limit: Duration = .seconds(60)) throws -> CommandResult {
    try run(["put"] + arguments, within: limit)
  }

  /// Runs `httpfs` to its end, with its outputs in files.
  func run(_ arguments: [String], within limit: Duration = .seconds(60)) throws -> CommandResult {
    try EndToEndTests.run(
      try commandLine(arguments), environment: Self.environment, within: limit)
  }

  /// Starts `httpfs`; the sandbox kills it at the latest.
  func start(_ arguments: String...) throws -> ChildProcess {
    try sandbox.start(try commandLine(arguments))
  }

  /// Starts `httpfs` on a terminal.
  func terminal(
    _ arguments: String..., columns: Int = 80, rows: Int = 24
  ) throws -> Terminal {
    try Terminal(
      try commandLine(arguments), environment: Self.environment, columns: columns, rows: rows)
  }

  // MARK: What is there

  func path(_ name: String) -> String { "\(directory)/\(name)" }

  /// The names in the directory, including hidden ones, sorted.
  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted()
  }

  /// The file's digest, as 64 hexadecimal digits.
  func sha256(_ name: String) throws -> String {
    try String(output(of: DigestCommand.words(path(name))).prefix(64))
  }

  /// The file's text.
  func text(_ name: String) throws -> String {
    try String(contentsOfFile: path(name), encoding: .utf8)
  }

  /// Writes a file of the Origin's content.
  ///
  /// - Returns: its FNV-1a hash, as the Origin logs it for an upload.
  func writeContent(_ name: String, seed: UInt64, byteCount: Int64) throws -> String {
    try TestContent.write(to: path(name), seed: seed, byteCount: byteCount)
    return TestContent.fnv1a(seed: seed, byteCount: byteCount)
  }

  /// Waits until a partial file has bytes and a record beside it.
  func waitForPart(of name: String, within limit: Duration = .seconds(60)) -> Bool {
    let part = path(name + ".httpfs-part")
    return Deadline(after: limit).wait {
      (FileStatus.byteCount(of: part) ?? 0) > 0
        && (FileStatus.byteCount(of: part + ".record") ?? 0) > 0
    }
  }

  /// All bytes of all files in the directory as text, to search for secrets.
  func everything() throws -> String {
    let names = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String }
    return try (names ?? []).map { name in
      // The beginning of a large file is enough.
      let data = try FileHandle(forReadingFrom: URL(fileURLWithPath: path(name)))
        .read(upToCount: 1 << 20)
      return name + "\n" + String(decoding: data ?? Data(), as: UTF8.self)
    }.joined(separator: "\n")
  }
}

extension CommandResult {
  /// The lines of standard error.
  var errorLines: [String] { error.split(separator: "\n").map(String.init) }

  /// The JSON objects of standard output, one per line.
  ///
  /// - Throws: `HarnessError` if a line is not a JSON object.
  func jsonLines() throws -> [[String: Any]] {
    try output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { line in
      guard
        let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      else { throw HarnessError("not a JSON object: \(line)") }
      return object
    }
  }
}
