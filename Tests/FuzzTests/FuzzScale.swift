import Foundation

/// How many mutations a fuzz test tries, relative to the number that the ordinary run takes.
enum FuzzScale {
  /// From `HTTPFS_FUZZ_SCALE`; 1 where it is not set or no positive number.
  static let value: Double = {
    let text = ProcessInfo.processInfo.environment["HTTPFS_FUZZ_SCALE"] ?? ""
    guard let scale = Double(text), scale > 0, scale.isFinite else { return 1 }
    return scale
  }()

  /// The only seed to try, from `HTTPFS_FUZZ_SEED`: repeats what a failed run has printed.
  static let onlySeed: UInt64? = ProcessInfo.processInfo.environment["HTTPFS_FUZZ_SEED"]
    .flatMap { UInt64($0) }

  /// The first seed, from `HTTPFS_FUZZ_FIRST`, so one long run need not repeat another.
  static let firstSeed: UInt64 =
    ProcessInfo.processInfo.environment["HTTPFS_FUZZ_FIRST"].flatMap { UInt64($0) } ?? 0

  /// - Parameter count: the number at scale 1.
  /// - Returns: the number now, at least 1.
  static func count(_ count: Int) -> Int { max(1, Int(Double(count) * value)) }
}
