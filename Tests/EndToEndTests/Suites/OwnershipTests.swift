import Glibc
import Testing

/// The owners of files, and the rights of other users.
extension RealMounts {
  @Suite(.enabled(if: Host.isRoot, "needs root, to become other users")) struct Ownerships {
    private static func asUser(_ user: Int, _ group: Int = 65534) -> [String] {
      ["setpriv", "--reuid", "\(user)", "--regid", "\(group)", "--clear-groups"]
    }

    @Test func `stat shows the user, the group and the permissions that were asked for`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: ["\(origin.url("o.bin", length: 5000, seed: 311))\n  dir=sub"],
        options: ["--uid", "12345", "--gid=23456", "--umask", "027"])
      func status(_ name: String) throws -> String {
        try output(of: ["stat", "--format=%u %g %a", mount.path(name)])
      }
      #expect(try status("") == "12345 23456 550\n")
      #expect(try status("sub") == "12345 23456 550\n")
      #expect(try status("sub/o.bin") == "12345 23456 440\n")
      #expect(try status(".status") == "12345 23456 440\n")
      #expect(try status(".control") == "12345 23456 600\n")
      #expect(try mount.sha256("sub/o.bin") == Digest.ofContent(seed: 311, byteCount: 5000))
    }

    @Test func `by default files belong to who mounts, and all may read`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("o.bin", length: 5000, seed: 312)])
      #expect(
        try output(of: ["stat", "--format=%u %g %a", mount.path("o.bin"), mount.mountpoint])
          == "\(getuid()) \(getgid()) 444\n\(getuid()) \(getgid()) 555\n")
    }

    @Test(arguments: [("077", false), ("027", true)])
    func `with --allow-other the kernel keeps out whom --umask denies`(
      mask: String, groupMayRead: Bool
    ) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("o.bin", length: 5000, seed: 313)],
        options: ["--allow-other", "--uid=12345", "--gid=23456", "--umask=\(mask)"])
      func read(_ user: [String], _ name: String = "o.bin") throws -> CommandResult {
        try run(user + ["sha256sum", mount.path(name)], within: .seconds(20))
      }
      let digest = Digest.ofContent(seed: 313, byteCount: 5000)
      #expect(try read(Self.asUser(12345)).output.prefix(64) == digest)
      #expect(try read([]).output.prefix(64) == digest, "root")
      let byGroup = try read(Self.asUser(34567, 23456))
      if groupMayRead {
        #expect(byGroup.output.prefix(64) == digest)
      } else {
        #expect(byGroup.error.contains("Permission denied"))
      }
      for name in ["o.bin", ".status", ".status.json", ".metrics", ".control"] {
        let byOther = try read(Self.asUser(45678), name)
        #expect(!byOther.succeeded && byOther.error.contains("Permission denied"), "\(name)")
      }
      let listing = try run(Self.asUser(45678) + ["ls", mount.mountpoint], within: .seconds(20))
      #expect(!listing.succeeded)
      // Only root and the user for whom root has mounted can control the mount.
      func command(_ user: [String]) throws -> Bool {
        try run(
          user + [try Products.httpfs, "prefetch", mount.mountpoint, "o.bin"],
          within: .seconds(20)
        ).succeeded
      }
      #expect(try command(Self.asUser(12345)))
      #expect(try command([]))
      #expect(try !command(Self.asUser(34567, 23456)))
      #expect(try !command(Self.asUser(45678)))
    }

    @Test func `an ordinary user keeps command of a mount whose files are another's`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try OrdinaryUserMount.make(
        sandbox, urls: [origin.url("o.bin", length: 5000, seed: 314)], options: ["--uid", "12345"])
      #expect(
        try output(of: mount.enter + ["stat", "--format=%u", mount.path("o.bin")]) == "12345\n")
      #expect(try mount.sha256("o.bin") == Digest.ofContent(seed: 314, byteCount: 5000))
      try output(
        of: mount.enter + [try Products.httpfs, "prefetch", mount.mountpoint, "o.bin"],
        within: .seconds(20))
    }

    @Test(arguments: [
      ["--umask", "8"], ["--umask", "0778"], ["--umask", "7777"], ["--umask=-1"], ["--uid", "-1"],
      ["--uid", "4294967295"], ["--gid", "staff"],
    ])
    func `numbers that cannot be are bad usage`(options: [String]) throws {
      let result = try run(
        [try Products.httpfs, "mount"] + options + ["http://127.0.0.1:9/a", "/nonexistent"])
      #expect(result.ending == .exited(64), "\(result.error)")
    }
  }
}
