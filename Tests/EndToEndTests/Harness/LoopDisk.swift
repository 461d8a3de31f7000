import Foundation
import Glibc

/// A disk of one test with its own file system: a file behind a loop device.
///
/// Its power can be cut: synced data survives, unsynced data is lost, as the file system's journal
/// guarantees.
final class LoopDisk {
  /// The file system on the disk.
  enum Format: String, Sendable {
    case ext4
    case xfs
  }

  /// The mount point.
  let path: String
  private let image: String
  private var isMounted = false
  private var isFrozen = false

  /// `FS_IOC_SHUTDOWN` of the kernel's fs.h: `_IOR('X', 125, __u32)`.
  private static let shutdownRequest: UInt = 0x8004_587D
  /// The flag of that header for no flush of the journal, as in a power failure.
  private static let withoutLogFlush: UInt32 = 2

  /// `FIFREEZE` and `FITHAW` of the kernel's fs.h: `_IOWR('X', 119, int)` and its successor.
  private static let freezeRequest: UInt = 0xC004_5877
  private static let thawRequest: UInt = 0xC004_5878

  /// Creates the file system and mounts it; this needs root.
  ///
  /// - Parameters:
  ///   - path: an existing directory.
  ///   - image: the sparse file to create, which is removed at the end.
  ///   - byteCount: the capacity.
  ///   - format: the file system.
  ///   - creation: further options of mkfs(8).
  /// - Throws: `HarnessError` if root, loop devices or the file system's tools are missing.
  init(
    at path: String, image: String, byteCount: Int64, format: Format = .ext4,
    creation: [String] = []
  ) throws {
    guard Host.isRoot else {
      throw HarnessError("a disk on a loop device is a mount of its own: it needs root")
    }
    self.path = path
    self.image = image
    try output(of: ["truncate", "-s", "\(byteCount)", image])
    let options = format == .ext4 ? ["-q", "-F", "-m", "0"] : ["-q", "-f"]
    try output(
      of: ["mkfs.\(format.rawValue)"] + options + creation + [image],
      environment: ["PATH": Host.administratorPath])
    try mount()
  }

  deinit {
    unmount()
    unlink(image)
  }

  /// Discards all unsynced data.
  ///
  /// The file system then answers every call with an error until ``reboot()``.
  func cutPower() throws {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw HarnessError.systemCall("open \(path)") }
    defer { close(descriptor) }
    var flags = Self.withoutLogFlush
    guard ioctl(descriptor, Self.shutdownRequest, &flags) == 0 else {
      throw HarnessError.systemCall("FS_IOC_SHUTDOWN of \(path)")
    }
  }

  /// Mounts the file system again from the disk alone, as after a start of the machine.
  ///
  /// - Throws: `HarnessError` if a process still has one of its files open.
  func reboot() throws {
    // The kernel may hold a file that was just closed a moment longer.
    var failure: CInt = 0
    let isGone = Deadline(after: .seconds(10)).wait(every: .milliseconds(10)) {
      if umount2(path, 0) == 0 { return true }
      failure = errno
      return false
    }
    guard isGone else { throw HarnessError.systemCall("unmount of \(path)", failure) }
    isMounted = false
    // The file system ends with its last mount, and a namespace made meanwhile has a copy of the
    // mount. Mounted before that, it would still be the one without power.
    let isReleased = try Deadline(after: .seconds(10)).wait(every: .milliseconds(20)) {
      try devices().isEmpty
    }
    guard isReleased else {
      throw HarnessError("the file system of \(image) is still mounted in another namespace")
    }
    try mount()
  }

  /// Makes the loop device accept only one page at a time.
  ///
  /// Since Linux 6.15, the device reports a write of several pages as a success if the file system
  /// below had room only for the first. Then fdatasync(2) succeeds although data is lost.
  func limitRequestsToPages() throws {
    guard let path = try devices().first else {
      throw HarnessError("no loop device holds \(image)")
    }
    let device = URL(filePath: String(path)).lastPathComponent
    try "4".write(
      toFile: "/sys/block/\(device)/queue/max_sectors_kb", atomically: false, encoding: .utf8)
  }

  /// The loop devices that hold the image.
  private func devices() throws -> [Substring] {
    try output(
      of: ["losetup", "--noheadings", "--output", "NAME", "--associated", image],
      environment: ["PATH": Host.administratorPath]
    ).split(separator: "\n")
  }

  /// Removes all files on it, and frees their space on the disk below.
  func empty() throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: path)
    where name != "lost+found" {
      try FileManager.default.removeItem(atPath: "\(path)/\(name)")
    }
    try output(of: ["sync", "--file-system", path])
  }

  /// Makes the file system read-only, which succeeds only if no file is open for writing.
  func remountReadOnly() throws {
    try output(of: ["mount", "-o", "remount,ro", path])
  }

  /// Makes ext4 treat itself as damaged: it becomes read-only at once, despite open writers.
  func abort() throws {
    try output(of: ["mount", "-o", "remount,abort", path])
  }

  /// Makes all writes wait from now on, as on a stalled disk, or lets them continue.
  func setFrozen(_ isFrozen: Bool) throws {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw HarnessError.systemCall("open \(path)") }
    defer { close(descriptor) }
    guard ioctl(descriptor, isFrozen ? Self.freezeRequest : Self.thawRequest, 0) == 0 else {
      throw HarnessError.systemCall("\(isFrozen ? "freeze" : "thaw") of \(path)")
    }
    self.isFrozen = isFrozen
  }

  /// Detaches the mount, even if files on it are open.
  func unmount() {
    guard isMounted else { return }
    if isFrozen { try? setFrozen(false) }
    isMounted = false
    _ = umount2(path, CInt(MNT_DETACH))
  }

  private func mount() throws {
    // mount(8) finds a free loop device and releases it with the mount.
    try output(
      of: ["mount", "-o", "loop,noatime", image, path],
      environment: ["PATH": Host.administratorPath])
    isMounted = true
  }
}
