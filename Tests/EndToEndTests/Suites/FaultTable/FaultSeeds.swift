import Foundation

/// The seeds that every row of the fault table is run with.
///
/// `HTTPFS_FAULT_SEEDS` says how many (1 by default), `HTTPFS_FIRST_FAULT_SEED` which is the first
/// (1 by default); `scripts/torture faults` sets them.
enum FaultSeeds {
  static let all: [UInt64] = {
    let first = number("HTTPFS_FIRST_FAULT_SEED")
    // More than anybody waits for, so a slip of the keyboard does not fill the memory.
    let count = min(max(number("HTTPFS_FAULT_SEEDS"), 1), 100_000)
    return (0..<count).map { first &+ $0 }
  }()

  /// How many readers row 73 has: 10,000 as `scripts/torture faults` says by `HTTPFS_CROWD`, and a
  /// quarter in `scripts/test`.
  ///
  /// What they read shrinks with them: they are always more than its pieces.
  static let crowd = ProcessInfo.processInfo.environment["HTTPFS_CROWD"] ?? "2500"

  private static func number(_ name: String) -> UInt64 {
    ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) } ?? 1
  }
}
