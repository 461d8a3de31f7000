/// The resource at a path: deterministic bytes or a file below the root directory.
package enum Resource: Equatable, Sendable {
  /// `length` bytes of ``OriginContent`` of this seed.
  case generated(length: Int64, seed: UInt64)

  /// A file: its length in bytes, its modification time in nanoseconds since 1970, its inode
  /// number.
  case file(length: Int64, modified: Int64, inodeNumber: UInt64)

  /// 2020-01-01 00:00 UTC, the modification time of version 0 of generated content.
  private static let epoch: Int64 = 1_577_836_800

  /// The complete length in bytes.
  package var completeLength: Int64 {
    switch self {
    case .generated(let length, _): length
    case .file(let length, _, _): length
    }
  }

  /// The opaque text of the strong entity tag of a version.
  package func entityTag(version: UInt64) -> String {
    switch self {
    case .generated(let length, let seed):
      "\(hex(seed))-\(hex(UInt64(length)))-v\(version)"
    case .file(let length, let modified, let inodeNumber):
      "\(hex(inodeNumber))-\(hex(UInt64(length)))-\(hex(UInt64(bitPattern: modified)))"
        + (version == 1 ? "" : "-v\(version)")
    }
  }

  /// The modification time of a version, in seconds since 1970: an hour later with each version.
  package func lastModified(version: UInt64) -> Int64 {
    // After some versions the date stays the same, but the entity tag still changes.
    let age = Int64(min(version, 30_000)) * 3600
    switch self {
    case .generated: return Self.epoch + age
    case .file(_, let modified, _): return modified / 1_000_000_000 + (version == 1 ? 0 : age)
    }
  }

  private func hex(_ value: UInt64) -> String { String(value, radix: 16) }
}
