import Foundation
import Glibc
import Testing

/// A mount needs no privileges except those of fusermount3.
extension RealMounts {
  @Suite(
    .enabled(if: Host.isRoot, "needs root, to become another user; as one, all suites run as that"))
  struct OrdinaryUser {
    /// The words that run a command as the user `nobody`.
    private static let asUser = [
      "setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups",
    ]

    /// The words that start a command as the user `nobody`, in a mount namespace with a suitable
    /// `/dev/fuse`.
    ///
    /// The device has the mode that udev gives it (0666). On a machine without udev, only root may
    /// open it, and the tests do not change that for other processes.
    private func launcher(_ sandbox: Sandbox, deviceMode: String = "666") throws -> [String] {
      let device = sandbox.path("fuse-device-\(deviceMode)")
      if access(device, F_OK) != 0 {
        try shell("mknod -m \(deviceMode) \(quoted(device)) c 10 229")
      }
      let script = "mount --bind \(quoted(device)) /dev/fuse && exec \"$@\""
      return MountNamespace.launcher(script: script) + Self.asUser
    }

    /// Creates a home directory of the user with a mount point `mnt`.
    private func home(_ sandbox: Sandbox) throws -> String {
      let home = try sandbox.makeDirectory("home")
      let mountpoint = try sandbox.makeDirectory("home/mnt")
      try output(of: ["chown", "nobody:nogroup", home, mountpoint])
      return home
    }

    private func mount(_ sandbox: Sandbox, urls: [String], options: [String] = []) throws -> Mount {
      let home = try home(sandbox)
      let list = try sandbox.write(urls.joined(separator: "\n") + "\n", to: "user-urls.txt")
      return sandbox.adopt(
        try Mount(
          source: list, mountpoint: "\(home)/mnt", cacheDirectory: "\(home)/cache",
          options: options, launcher: try launcher(sandbox),
          enter: { ["nsenter", "--target", String($0), "--mount", "--"] + Self.asUser }))
    }

    @Test func `an ordinary user mounts, reads and unmounts`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 32 << 20
      let mount = try mount(sandbox, urls: [origin.url("u.bin", length: length, seed: 91)])
      #expect(
        MountTable.httpfs(at: mount.mountpoint, process: String(mount.process.processID)) != nil)
      let digest = Digest.ofContent(seed: 91, byteCount: length)
      #expect(try mount.sha256("u.bin") == digest)
      // The file is complete, and is read again without passthrough.
      let sent = try origin.requests().bodyByteCount
      #expect(try mount.waitForStatus(of: "u.bin") { $0.state == "complete" })
      let file = try HeldFile(mount.path("u.bin"), enter: mount.enter)
      #expect(
        try file.read(at: 12_345_678, 65536)
          == .bytes(
            count: 65536, sha256: Digest.ofContent(seed: 91, offset: 12_345_678, byteCount: 65536)))
      #expect(
        try file.readMapped(at: 12_345_678, 65536)
          == .bytes(
            count: 65536, sha256: Digest.ofContent(seed: 91, offset: 12_345_678, byteCount: 65536)))
      #expect(try !mount.status(of: "u.bin").passthrough)
      file.close()
      #expect(try mount.sha256("u.bin") == digest)
      #expect(try origin.requests().bodyByteCount == sent)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `httpfs unmount and SIGTERM work for an ordinary user`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let urls = [origin.url("u.bin", length: 1 << 20, seed: 92)]
      let first = try mount(sandbox, urls: urls)
      try output(of: first.enter + [try Products.httpfs, "unmount", first.mountpoint])
      #expect(first.process.wait(within: .seconds(10)) == .exited(0))
      let second = try mount(sandbox, urls: urls)
      second.process.signal(SIGTERM)
      #expect(second.process.wait(within: .seconds(10)) == .exited(0))
    }

    @Test func `a user who may not open the device is told what to do`() throws {
      let sandbox = try Sandbox()
      let home = try home(sandbox)
      let list = try sandbox.write("http://127.0.0.1:9/a\n", to: "user-urls.txt")
      let result = try run(
        try launcher(sandbox, deviceMode: "600") + [
          try Products.httpfs, "mount", "--cache-dir", "\(home)/cache", list, "\(home)/mnt",
        ])
      #expect(result.ending == .exited(1))
      // The reason comes before the remedy.
      #expect(
        result.error.hasPrefix(
          "httpfs: this user may not open /dev/fuse (Permission denied); let root run "),
        "\(result.error)")
      #expect(result.error.split(separator: "\n").count == 1)
    }

    @Test func `a mount that fusermount3 refuses names its reason in the one line of the failure`()
      throws
    {
      let sandbox = try Sandbox()
      let home = try home(sandbox)
      // Without `user_allow_other`, whatever this machine allows.
      let settings = try sandbox.write("", to: "fuse.conf")
      let device = sandbox.path("fuse-device")
      try shell("mknod -m 666 \(quoted(device)) c 10 229")
      let script =
        "mount --bind \(quoted(device)) /dev/fuse && "
        + "mount --bind \(quoted(settings)) /etc/fuse.conf && exec \"$@\""
      let list = try sandbox.write("http://127.0.0.1:9/a\n", to: "user-urls.txt")
      let result = try run(
        MountNamespace.launcher(script: script) + Self.asUser + [
          try Products.httpfs, "mount", "--allow-other", "--cache-dir", "\(home)/cache", list,
          "\(home)/mnt",
        ])
      #expect(result.ending == .exited(1))
      #expect(
        result.error.hasPrefix("httpfs: cannot mount at '\(home)/mnt': fusermount3: option "),
        "\(result.error)")
      #expect(result.error.contains("user_allow_other"), "\(result.error)")
      #expect(result.error.split(separator: "\n").count == 1, "\(result.error)")
    }

    @Test func `a cache directory that the user cannot write is refused`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let denied = try sandbox.makeDirectory("of-root") + "/cache"
      let result = try run(
        try launcher(sandbox) + [try Products.httpfs, "mount", "--cache-dir", denied]
          + [origin.url("u.bin", length: 1, seed: 1), try home(sandbox) + "/mnt"],
        within: .seconds(20))
      #expect(result.ending == .exited(1))
      #expect(result.error.hasPrefix("httpfs: "))
      #expect(result.error.split(separator: "\n").count == 1, "\(result.error)")
      #expect(result.error.contains(denied), "\(result.error)")
    }

    @Test func `another user may not look at a mount`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("u.bin", length: 1 << 20, seed: 93)])
      let result = try run(
        Self.asUser + ["cat", mount.path("u.bin")], within: .seconds(10))
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("Permission denied"))
    }

    @Test func `--allow-other lets another user read`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("u.bin", length: 1 << 20, seed: 94)], options: ["--allow-other"])
      let line = try output(
        of: Self.asUser + ["sha256sum", mount.path("u.bin")])
      #expect(line.prefix(64) == Digest.ofContent(seed: 94, byteCount: 1 << 20))
    }
  }
}
