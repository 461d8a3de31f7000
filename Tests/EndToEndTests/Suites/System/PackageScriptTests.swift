import Foundation
import Testing

/// The scripts that dpkg runs when the package is removed and purged.
///
/// `scripts/package --check` tests them with dpkg.
extension RealMounts {
  @Suite struct PackageScripts {
    /// Runs the script with another path in place of one of its own.
    private func script(
      _ name: String, _ argument: String, replacing path: String, by other: String
    ) throws -> String {
      let text = try Repository.text(of: "scripts/packaging/debian/\(name)")
      #expect(text.contains(path))
      return "sh -c \(quoted(text.replacingOccurrences(of: path, with: other))) sh \(argument)"
    }

    /// Purges a cache after `preparation`, in a mount namespace; `$c` is the cache.
    ///
    /// - Returns: what is said and then what is left.
    private func purge(_ preparation: String) throws -> (said: String, left: [String]) {
      let sandbox = try Sandbox()
      let cache = sandbox.path("cache")
      let purge = try script("postrm", "purge", replacing: "/var/cache/httpfs", by: cache)
      let result = try run(
        MountNamespace.launcher(
          script: """
            set -e; c=\(quoted(cache)); cd \(quoted(sandbox.path(".")))
            \(preparation)
            \(purge)
            find . -mindepth 1 | LC_ALL=C sort
            """))
      #expect(result.succeeded, "\(result.error)")
      return (result.error, result.output.split(separator: "\n").map(String.init))
    }

    @Test func `a purge removes a cache, also one that is a disk of its own`() throws {
      let plain = try purge("mkdir -p $c/x; touch $c/x/lock")
      #expect(plain.left.isEmpty && plain.said.isEmpty, "\(plain)")
      let disk = try purge("mkdir $c; mount -t tmpfs none $c; mkdir $c/x; touch $c/x/lock")
      #expect(disk.left == ["./cache"] && disk.said.isEmpty, "\(disk)")
    }

    @Test func `a purge keeps a cache that is in use, also behind a link`() throws {
      let link = try purge(
        "mkdir -p real/x; ln -s real $c; exec 9>real/x/lock; flock 9")
      #expect(link.left == ["./cache", "./real", "./real/x", "./real/x/lock"], "\(link)")
      #expect(link.said.contains("cache is kept, because mounts still use: "), "\(link)")
      let free = try purge("mkdir -p real/x; ln -s real $c; touch real/x/lock")
      #expect(free.left == ["./cache", "./real"] && free.said.isEmpty, "\(free)")
    }

    @Test(arguments: ["mount --bind precious $c/y", "mount -t tmpfs none $c/y; touch $c/y/f"])
    func `a purge removes nothing that is mounted below the cache`(_ mount: String) throws {
      let result = try purge("mkdir -p $c/y precious; touch precious/f; \(mount)")
      #expect(result.left.contains("./cache/y/f") && result.left.contains("./precious/f"))
      #expect(result.said.contains("is kept, because something is mounted below it"))
    }

    @Test func `no name of a mount point writes controls or commands to the terminal`() throws {
      let sandbox = try Sandbox()
      let mounts = try sandbox.write(
        """
        a /mnt/plain fuse.httpfs ro 0 0
        b /mnt/\u{1B}]0;x\u{7}\u{9B}$(id)\\012new\\040line fuse.httpfs ro 0 0
        c /mnt/other ext4 rw 0 0

        """, to: "mounts")
      let remove = try script("prerm", "remove", replacing: "/proc/self/mounts", by: mounts)
      // Stops no services of this machine.
      let result = try run([
        "bash", "-c", remove.replacingOccurrences(of: "/run/systemd/system", with: "/nowhere"),
      ])
      #expect(result.succeeded)
      let rest = " stays mounted, and is served, until it is unmounted (findmnt -t fuse.httpfs)"
      #expect(
        result.errorLines == [
          "httpfs: /mnt/plain" + rest, "httpfs: /mnt/?]0;x???$(id)\\012new\\040line" + rest,
        ])
    }
  }
}
