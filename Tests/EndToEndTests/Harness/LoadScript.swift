import Foundation

/// The tests of `scripts/torture`, which use the programs under test.
enum LoadScript {
  /// Runs `scripts/torture NAME` to its end, with the binaries of this test run.
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
    // Skip the directories Harness, EndToEndTests and Tests.
    for _ in 0..<4 { path = path.deletingLastPathComponent as NSString }
    return path as String
  }
}
