import Foundation

/// The seeds for every row of the fault table.
///
/// `HTTPFS_FAULT_SEEDS` is their number (1 by default), `HTTPFS_FIRST_FAULT_SEED` the first one (1
/// by default); `scripts/torture faults` sets both.
enum FaultSeeds {
  static let all: [UInt64] = {
    let first = number("HTTPFS_FIRST_FAULT_SEED")
    // The limit is beyond any useful run, so a typing error does not fill the memory.
    let count = min(max(number("HTTPFS_FAULT_SEEDS"), 1), 100_000)
    return (0..<count).map { first &+ $0 }
  }()

  /// The number of readers in row 73: `HTTPFS_CROWD`, 2,500 by default.
  ///
  /// `scripts/torture faults` sets it to 10,000. The length of what they read shrinks with their
  /// number: they always outnumber its pieces.
  static let crowd = ProcessInfo.processInfo.environment["HTTPFS_CROWD"] ?? "2500"

  /// Whether `scripts/torture faults` runs the rows.
  static let isScript = ProcessInfo.processInfo.environment["HTTPFS_CROWD"] != nil

  private static func number(_ name: String) -> UInt64 {
    ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) } ?? 1
  }
}
