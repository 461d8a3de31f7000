import Glibc
import LinuxSystem
import TextFormat

/// Unmounts a mount, as root or through fusermount3.
struct Unmounting {
  let mount: MountTable.Entry
  /// Whether to detach it even if files are open.
  let lazy: Bool

  /// Unmounts; returns when the mount is gone.
  func perform() throws(CommandFailure) {
    if geteuid() == 0 {
      try unmountDirectly(lazy: lazy)
    } else {
      try unmountThroughHelper(lazy: lazy)
    }
    try waitUntilGone()
  }

  /// Whether to detach the mount even though it is in use, because its daemon has died and open
  /// files can no longer be read.
  private func isDead(lazy: Bool) -> Bool { !lazy && isFUSEMountDead(at: mount.mountpoint) }

  /// umount2(2), for root only.
  private func unmountDirectly(lazy: Bool) throws(CommandFailure) {
    // The path was resolved before; do not follow a link that has replaced it since.
    let flags = Int32(UMOUNT_NOFOLLOW) | (lazy ? Int32(MNT_DETACH) : 0)
    guard umount2(mount.mountpoint, flags) != 0 else { return }
    let error = ErrorNumber.last
    if error.rawValue == EBUSY, isDead(lazy: lazy) { return try unmountDirectly(lazy: true) }
    throw error.rawValue == EBUSY
      ? busy() : CommandFailure("cannot unmount '\(mount.mountpoint)'", error)
  }

  /// fusermount3, which is setuid root and unmounts the mounts of its caller.
  private func unmountThroughHelper(lazy: Bool) throws(CommandFailure) {
    let program = "fusermount3"
    let complaint: String?
    do {
      complaint = try Self.complaint(
        of: program, ["-u"] + (lazy ? ["-z"] : []) + ["--", mount.mountpoint])
    } catch {
      throw CommandFailure("cannot run \(program); install the package fuse3", error)
    }
    guard let complaint else { return }
    if complaint.contains("busy") {
      if isDead(lazy: lazy) { return try unmountThroughHelper(lazy: true) }
      throw busy()
    }
    let reason = complaint.split(separator: "\n").first ?? "\(program) failed"
    throw CommandFailure(
      "cannot unmount '\(mount.mountpoint)': \(escapingControls(String(reason)))")
  }

  /// Runs a program in the C locale, so that its messages can be interpreted.
  ///
  /// - Returns: its messages if it fails, nil if it succeeds.
  private static func complaint(
    of program: String, _ arguments: [String]
  ) throws(ErrorNumber) -> String? {
    var errors = try ChildPipe()
    var child = ChildProgram(.named(program), [program] + arguments)
    child.variables = [("LC_ALL", "C")]
    child.errorOutput = .copy(of: errors.writeEnd)
    let process = try child.start()
    errors.closeWriteEnd()
    let output = (try? StreamCalls.contents(of: errors.readEnd)) ?? []
    guard try process.waitForEnd() != .exited(0) else { return nil }
    return String(decoding: output, as: UTF8.self)
  }

  private func busy() -> CommandFailure {
    CommandFailure(
      "'\(mount.mountpoint)' is busy: a process has a file open or works in it;"
        + " close it, or use --lazy")
  }

  /// Waits until the kernel no longer lists the mount, which is usually at once.
  private func waitUntilGone() throws(CommandFailure) {
    let intervalMicroseconds: UInt32 = 10_000
    let attempts = 500
    for _ in 0..<attempts {
      if try !currentMountTable().entries.contains(mount) { return }
      usleep(intervalMicroseconds)
    }
    throw CommandFailure(
      "'\(mount.mountpoint)' is still mounted after 5 s; 'fuser -vm' shows what uses it, --lazy "
        + "detaches it all the same")
  }
}
