import Foundation
import Glibc
import Testing

/// httpfs as a helper of mount(8), with the command line that mount(8) of Debian 12 makes.
///
/// `scripts/package --check` tests mount(8) itself and /etc/fstab.
extension RealMounts {
  @Suite struct MountHelpers {
    /// Creates the helper under its name in `/sbin`.
    private func helper(_ sandbox: Sandbox, _ name: String = "mount.fuse.httpfs") throws -> String {
      let path = sandbox.path(name)
      if access(path, X_OK) != 0 {
        try FileManager.default.createSymbolicLink(
          atPath: path, withDestinationPath: try Products.httpfs)
      }
      return path
    }

    @Test(arguments: ["mount.httpfs", "mount.fuse.httpfs"])
    func `mount(8) mounts a list with the options of httpfs mount`(name: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let list = try sandbox.write(
        origin.url("h.bin", length: 300_000, seed: 191) + "\n", to: "urls.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      let cache = sandbox.path("cache")
      defer { _ = try? run(["fusermount3", "-u", "-z", mountpoint]) }
      let options =
        "rw,_netdev,nofail,x-a.b=c,noatime,noexec,no-proxy=\"localhost,127.0.0.1\","
        + "cache_dir=\(cache),connections=3,uid=12345,gid=23456,umask=077,"
        + "rate-limit=50M/s,file_rate_limit=20M"
      let result = try run(
        [try helper(sandbox, name), list, mountpoint, "-n", "-o", options], within: .seconds(20))
      #expect(result.ending == .exited(0), "\(result.error)")
      #expect(result.output.isEmpty && result.error.isEmpty)
      let entry = try #require(MountTable.httpfs(at: mountpoint))
      // `mount -a` recognises by the source that this line of fstab is mounted.
      #expect(entry.source == list)
      #expect(Set(["nosuid", "nodev", "noexec"]).isSubset(of: entry.options))
      #expect(access(cache, F_OK) == 0)
      #expect(
        try output(of: ["stat", "--format=%u %g %a", "\(mountpoint)/h.bin"]) == "12345 23456 400\n")
      let line = try output(of: ["sha256sum", "\(mountpoint)/h.bin"], within: .seconds(20))
      #expect(line.prefix(64) == Digest.ofContent(seed: 191, byteCount: 300_000))
      let status = try output(of: ["cat", "\(mountpoint)/.status.json"], within: .seconds(20))
      for rate in [50 << 20, 20 << 20] {
        #expect(status.contains("\"rate_limit_bytes_per_second\":\(rate)"), "\(status)")
      }
      try output(of: ["fusermount3", "-u", mountpoint])
      let released = Deadline(after: .seconds(10)).wait(every: .milliseconds(50)) {
        let listing = try? run([try Products.httpfs, "cache", "verify", "--cache-dir", cache])
        return listing?.succeeded == true
      }
      #expect(released, "the daemon still holds its cache")
    }

    @Test(arguments: [
      ("nonsense", "unknown option 'nonsense'"),
      ("connections=many", "connections"),
      ("rate-limit=fast", "'fast' is invalid for '--rate-limit"),
      ("connections=65", "--connections must be from 1 to 64"),
      ("header=X-Token: abc", "header-file"),
      ("proxy=http://user:secret@127.0.0.1:1", "'proxy' is refused"),
      ("remount", "'remount' is refused"),
    ])
    func `an option that cannot be is named, and nothing is mounted`(
      option: String, message: String
    ) throws {
      let sandbox = try Sandbox()
      let list = try sandbox.write("http://127.0.0.1:9/a\n", to: "urls.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      let result = try run(
        [try helper(sandbox), list, mountpoint]
          + ["-o", "ro,cache-dir=\(sandbox.path("cache")),\(option)"], within: .seconds(20))
      #expect(result.ending == .exited(1))
      #expect(result.error.hasPrefix("mount.fuse.httpfs: "))
      #expect(result.error.contains(message), "\(result.error)")
      #expect(!result.error.contains("secret") && !result.error.contains("abc"))
      #expect(MountTable.httpfs(at: mountpoint) == nil)
    }

    @Test func `the table of mounts shows no secret of a URL`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("q.bin", length: 1000, seed: 192)
      try #require(url.contains("?"))
      let mountpoint = try sandbox.makeDirectory("mnt")
      defer { _ = try? run(["fusermount3", "-u", "-z", mountpoint]) }
      try output(
        of: [try helper(sandbox), url, mountpoint, "-o", "cache-dir=\(sandbox.path("cache"))"],
        within: .seconds(20))
      let entry = try #require(MountTable.httpfs(at: mountpoint))
      #expect(entry.source == String(url.prefix { $0 != "?" }))
      try output(of: ["fusermount3", "-u", mountpoint])
    }

    @Test func `a failed mount ends with mount(8)'s 32, and -f and -s mean what they say`() throws {
      let sandbox = try Sandbox()
      let list = try sandbox.write("http://127.0.0.1:9/a\n", to: "urls.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      let options = ["-o", "cache-dir=\(sandbox.path("cache")),dmask=0,nonsense"]
      let missing = try run(
        [try helper(sandbox), sandbox.path("no-such-list"), mountpoint]
          + ["-o", "cache-dir=\(sandbox.path("cache"))"], within: .seconds(20))
      #expect(missing.ending == .exited(32))
      #expect(missing.error.contains("no-such-list"))
      let fake = try run([try helper(sandbox), list, mountpoint, "-sf"] + options)
      #expect(fake.ending == .exited(0))
      #expect(fake.error.contains("'dmask' is ignored"))
      #expect(MountTable.httpfs(at: mountpoint) == nil)
      #expect(try run([try helper(sandbox), list]).ending == .exited(1))
    }
  }
}
