import Foundation
import Glibc

/// A wall clock that a test sets while programs run with it (libfaketime).
///
/// The monotonic clocks are unaffected, as when a user sets the time.
struct FakeClock {
  private let library: String
  private let file: String

  /// Creates a clock that is right at first.
  ///
  /// - Throws: `HarnessError` if libfaketime is not installed.
  init(_ sandbox: Sandbox) throws {
    // Debian has the library in the directory of the machine's architecture.
    let triplets = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib")) ?? []
    let candidates = triplets.map { "/usr/lib/\($0)/faketime/libfaketimeMT.so.1" }
    guard let library = candidates.first(where: { access($0, R_OK) == 0 }) else {
      throw HarnessError("no libfaketimeMT.so.1 below /usr/lib: install the package libfaketime")
    }
    self.library = library
    file = sandbox.path("clock-\(UInt32.random(in: 0 ... .max))")
    try set(days: 0)
  }

  /// The words that start a command with this clock.
  var launcher: [String] {
    [
      "env", Host.preloading(library), "FAKETIME_TIMESTAMP_FILE=\(file)", "FAKETIME_NO_CACHE=1",
      "FAKETIME_DONT_FAKE_MONOTONIC=1",
      // Run env(1) twice: the library changes the environment of the first program that loads it,
      // and Swift's runtime finds the command line by the place of the environment.
      "env",
    ]
  }

  /// Sets the clock to `days` days from now, which may be negative.
  func set(days: Int) throws {
    let text = days < 0 ? "\(days)d\n" : "+\(days)d\n"
    // Rename: a reader must not find the file empty.
    try text.write(toFile: file, atomically: true, encoding: .utf8)
  }

  /// The year that a program with this clock sees.
  func year() throws -> Int {
    let text = try output(of: launcher + ["date", "+%Y"])
    guard let year = Int(text.dropLast()) else { throw HarnessError("no year: \(text)") }
    return year
  }
}
