import Glibc

/// Mounts as an ordinary user, for a test that runs as root.
enum OrdinaryUserMount {
  /// The words that run a command as the user `nobody`.
  static let asUser = [
    "setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups",
  ]

  /// Mounts `urls` as the user `nobody`.
  ///
  /// The mount namespace is a separate one, in which `/dev/fuse` has the mode that udev gives it.
  static func make(
    _ sandbox: Sandbox, urls: [String], mountpoint: String = "home/mnt", options: [String] = []
  ) throws -> Mount {
    guard Host.isRoot else { throw HarnessError("needs root, to become another user") }
    let home = try sandbox.makeDirectory("home")
    let mountpoint = try sandbox.makeDirectory(mountpoint)
    try output(of: ["chown", "nobody:nogroup", home, mountpoint])
    let device = sandbox.path("fuse-device")
    if access(device, F_OK) != 0 { try shell("mknod -m 666 \(quoted(device)) c 10 229") }
    let list = try sandbox.write(urls.joined(separator: "\n") + "\n", to: "user-urls.txt")
    let script = "mount --bind \(quoted(device)) /dev/fuse && exec \"$@\""
    return sandbox.adopt(
      try Mount(
        source: list, mountpoint: mountpoint, cacheDirectory: "\(home)/cache", options: options,
        launcher: MountNamespace.launcher(script: script) + asUser,
        enter: { ["nsenter", "--target", String($0), "--mount", "--"] + asUser }))
  }
}
