import Foundation

/// How often the tests of this folder do what they do at random.
enum DurabilityScale {
  /// Kills of the mount's daemon: `HTTPFS_KILLS`, 25 by default; `scripts/torture kill-test` sets it.
  static let killCount = number("HTTPFS_KILLS", default: 25)

  /// Cuts of power: `HTTPFS_POWER_CUTS`, 3 by default; `scripts/torture power-cut-test` sets it.
  static let powerCutCount = number("HTTPFS_POWER_CUTS", default: 3)

  /// The file system whose power is cut: `HTTPFS_POWER_CUT_FORMAT`, ext4 by default.
  static let powerCutFormat =
    ProcessInfo.processInfo.environment["HTTPFS_POWER_CUT_FORMAT"]
    .flatMap(LoopDisk.Format.init(rawValue:)) ?? .ext4

  /// What random moments and places are made from: `HTTPFS_DURABILITY_SEED`, 1 by default.
  static let seed = UInt64(number("HTTPFS_DURABILITY_SEED", default: 1))

  /// How long a test may take: no test has a longer limit than its suite.
  static let minutes =
    killCount > 25 || powerCutCount > 3 || CallSweep.isExhaustive ? 60 : 5

  private static func number(_ name: String, default value: Int) -> Int {
    let given = ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    // More than anybody waits for, so a slip of the keyboard does not fill the disk.
    return min(max(given ?? value, 1), 10_000)
  }
}
