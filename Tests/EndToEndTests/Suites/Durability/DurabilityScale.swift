import Foundation

/// The number of random repetitions in the tests of this directory.
enum DurabilityScale {
  /// The kills of the mount's daemon: `HTTPFS_KILLS`, 25 by default.
  ///
  /// `scripts/torture kill-test` sets it.
  static let killCount = number("HTTPFS_KILLS", default: 25)

  /// The power cuts: `HTTPFS_POWER_CUTS`, 3 by default; `scripts/torture power-cut-test` sets it.
  static let powerCutCount = number("HTTPFS_POWER_CUTS", default: 3)

  /// The file system whose power is cut: `HTTPFS_POWER_CUT_FORMAT`, ext4 by default.
  static let powerCutFormat =
    ProcessInfo.processInfo.environment["HTTPFS_POWER_CUT_FORMAT"]
    .flatMap(LoopDisk.Format.init(rawValue:)) ?? .ext4

  /// The seed of random moments and places: `HTTPFS_DURABILITY_SEED`, 1 by default.
  static let seed = UInt64(number("HTTPFS_DURABILITY_SEED", default: 1))

  /// The time limit of a test in minutes; a test cannot have a longer limit than its suite.
  static let minutes =
    killCount > 25 || powerCutCount > 3 || CallSweep.isExhaustive ? 60 : 5

  private static func number(_ name: String, default value: Int) -> Int {
    let given = ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    // The limit is beyond any useful run, so a typing error does not fill the disk.
    return min(max(given ?? value, 1), 10_000)
  }
}
