import Foundation

/// The number of mutations that a fuzz test tries, relative to that of the ordinary run.
enum FuzzScale {
  /// From `HTTPFS_FUZZ_SCALE`; 1 if it is unset or not a positive number.
  static let value: Double = {
    let text = ProcessInfo.processInfo.environment["HTTPFS_FUZZ_SCALE"] ?? ""
    guard let scale = Double(text), scale > 0, scale.isFinite else { return 1 }
    return scale
  }()

  /// The only seed to try, from `HTTPFS_FUZZ_SEED`, to repeat a failed run.
  static let onlySeed: UInt64? = ProcessInfo.processInfo.environment["HTTPFS_FUZZ_SEED"]
    .flatMap { UInt64($0) }

  /// The first seed, from `HTTPFS_FUZZ_FIRST`, so long runs can use different seeds.
  static let firstSeed: UInt64 =
    ProcessInfo.processInfo.environment["HTTPFS_FUZZ_FIRST"].flatMap { UInt64($0) } ?? 0

  /// The number of mutations at this scale.
  ///
  /// - Parameter count: the number at scale 1.
  /// - Returns: the scaled number, at least 1.
  static func count(_ count: Int) -> Int { max(1, Int(Double(count) * value)) }
}
