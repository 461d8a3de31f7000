import Foundation
import Glibc

/// A disk with less space behind it than it reports, as a thin volume may have.
///
/// When that space is full, write(2) succeeds. The kernel notices when it writes the pages, and
/// then drops them.
final class ThinDisk {
  /// The mount point of its file system.
  var path: String { disk.path }
  private let below: TinyDisk
  private let disk: LoopDisk

  /// Space is reserved for metadata, so the file system itself survives.
  private static let metadataByteCount: Int64 = 10 << 20

  /// The capacity that its file system reports.
  private static let byteCount: Int64 = 140 << 20

  /// Creates the disk in a new directory of `sandbox`; this needs root.
  ///
  /// - Parameters:
  ///   - sandbox: the place of the disk.
  ///   - blockByteCount: the block size of its file system.
  /// - Throws: `HarnessError` if root, loop devices or ext4's tools are missing.
  init(in sandbox: Sandbox, blockByteCount: Int = 1024) throws {
    let directory = try sandbox.makeDirectory("thin")
    let places = ["below", "disk"].map { "\(directory)/\($0)" }
    for place in places {
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
    }
    below = try TinyDisk(at: places[0], byteCount: Self.byteCount + (1 << 20))
    disk = try LoopDisk(
      at: places[1], image: "\(places[0])/image", byteCount: Self.byteCount,
      creation: [
        "-b", "\(blockByteCount)", "-N", "512", "-J", "size=4", "-E",
        "nodiscard,packed_meta_blocks=1,lazy_itable_init=0,lazy_journal_init=0",
      ])
    try output(
      of: ["fallocate", "--length", "\(Self.metadataByteCount)", "\(places[0])/image"])
    try disk.limitRequestsToPages()
  }

  /// Fills all remaining space behind the disk.
  func fillBehind() throws {
    try output(of: [
      "bash", "-c", "head --bytes \(1 << 40) /dev/zero > \"$1\" || true", "bash",
      "\(below.path)/ballast",
    ])
  }

  /// Frees the space that ``fillBehind()`` filled.
  func emptyBehind() throws {
    try FileManager.default.removeItem(atPath: "\(below.path)/ballast")
  }

  func unmount() {
    disk.unmount()
    below.unmount()
  }
}
