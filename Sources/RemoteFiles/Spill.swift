internal import ExtentRecord
internal import HTTPTransferCore

/// The bytes of one version that lie in memory, because the cache could not take them.
///
/// A value without I/O; the file that it names is written and emptied by its owner.
struct Spill: Sendable {
  /// A file without a name, as sparse as the cache's would be.
  let file: Descriptor
  private(set) var extents = ExtentSet()
  /// What replies are reading just now.
  private var leases: [Int: ByteRange] = [:]
  private var lastLease = 0

  init(file: Descriptor) { self.file = file }

  mutating func insert(_ range: ByteRange) { extents.insert(range) }

  /// Keeps `range` until the lease of this number ends.
  mutating func beginLease(of range: ByteRange) -> Int {
    lastLease += 1
    leases[lastLease] = range
    return lastLease
  }

  mutating func endLease(_ number: Int) { leases[number] = nil }

  /// Gives `range` up, unless somebody is reading it.
  ///
  /// - Returns: whether it was given up.
  mutating func remove(_ range: ByteRange) -> Bool {
    guard !leases.values.contains(where: { $0.overlaps(range) }) else { return false }
    extents.remove(range)
    return true
  }
}

/// A claim on spilled bytes that ends with the last reference to it.
final class SpillLease: Sendable {
  private let version: RemoteVersion
  private let number: Int

  init(version: RemoteVersion, number: Int) {
    self.version = version
    self.number = number
  }

  deinit { version.endLease(number) }
}
