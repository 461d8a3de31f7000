internal import HTTPTransferCore
internal import LinuxSystem

/// A file in memory, without a name and as sparse as a cache file; it is freed with the last
/// reference.
///
/// Compare these objects by identity: a version may get a new one, and what was known of the old
/// one does not hold for it.
final class SpillFile: Sendable {
  let descriptor: Descriptor

  init() throws(ErrorNumber) {
    descriptor = try SystemCalls.createMemoryFile(label: "httpfs")
  }
}

/// Identifies a claim on spilled bytes: its number, and the file whose bytes it keeps.
struct SpillClaim: Sendable {
  let number: Int
  let file: SpillFile
}

/// The bytes of one version that lie in memory, because the cache could not take them.
///
/// A value without I/O; the file that it names is written and emptied by its owner.
struct Spill: Sendable {
  let file: SpillFile
  private(set) var extents = ExtentSet()
  /// The ranges that replies are reading now.
  private var leases: [Int: ByteRange] = [:]
  private var lastLease = 0

  init(file: SpillFile) { self.file = file }

  mutating func insert(_ range: ByteRange) { extents.insert(range) }

  /// Removes `range` from the readable bytes; a reply that is reading them may continue.
  mutating func forget(_ range: ByteRange) { extents.remove(range) }

  /// Keeps `range` until the lease ends.
  mutating func beginLease(of range: ByteRange) -> SpillClaim {
    lastLease += 1
    leases[lastLease] = range
    return SpillClaim(number: lastLease, file: file)
  }

  mutating func endLease(_ number: Int) { leases[number] = nil }

  /// Drops `range`, unless a reply is reading it.
  ///
  /// - Returns: whether it was dropped.
  mutating func remove(_ range: ByteRange) -> Bool {
    guard !leases.values.contains(where: { $0.overlaps(range) }) else { return false }
    extents.remove(range)
    return true
  }
}
