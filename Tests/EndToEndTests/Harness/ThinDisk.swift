import Foundation
import Glibc

/// A disk with less behind it than it says, as a thin volume may be: when that is full, write(2)
/// succeeds, and the kernel finds out when it writes the pages, which it then drops.
final class ThinDisk {
  /// Where its file system is mounted.
  var path: String { disk.path }
  private let below: TinyDisk
  private let disk: LoopDisk

  /// Metadata has a sure place, so the file system itself survives.
  private static let metadataByteCount: Int64 = 10 << 20

  /// Its capacity, as its file system tells it.
  private static let byteCount: Int64 = 140 << 20

  /// Makes it in a new directory of `sandbox`; only root may.
  ///
  /// - Parameters:
  ///   - sandbox: where it lies.
  ///   - blockByteCount: of its file system.
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

  /// Takes all the room that is left behind it.
  func fillBehind() throws {
    try output(of: [
      "bash", "-c", "head --bytes \(1 << 40) /dev/zero > \"$1\" || true", "bash",
      "\(below.path)/ballast",
    ])
  }

  /// Gives it back.
  func emptyBehind() throws {
    try FileManager.default.removeItem(atPath: "\(below.path)/ballast")
  }

  func unmount() {
    disk.unmount()
    below.unmount()
  }
}
