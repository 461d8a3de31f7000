import Foundation

/// The tests of `scripts/torture`, run with the programs under test.
enum LoadScript {
  /// Runs `scripts/torture NAME` to its end, on the binaries that this test run has built.
  static func run(
    _ name: String, _ arguments: [String], within limit: Duration
  ) throws -> CommandResult {
    let binaries = (try Products.httpfs as NSString).deletingLastPathComponent
    return try EndToEndTests.run(
      ["\(package)/scripts/torture", name, "--binaries", binaries] + arguments, within: limit)
  }

  /// The package's directory.
  private static var package: String {
    var path = #filePath as NSString
    // Harness, EndToEndTests, Tests.
    for _ in 0..<4 { path = path.deletingLastPathComponent as NSString }
    return path as String
  }
}
