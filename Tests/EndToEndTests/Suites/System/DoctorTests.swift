import Foundation
import Glibc
import Testing

/// `httpfs doctor` finds the obstacles to a mount, and suggests fixes.
extension RealMounts {
  @Suite struct Doctor {
    private struct Report: Decodable {
      struct Finding: Decodable {
        let check: String
        let level: String
        let message: String
        let advice: String?
      }

      let fit: Bool
      let findings: [Finding]

      /// The problem that a check has found; nil if there is none.
      func complaint(of check: String) -> Finding? {
        findings.first { $0.check == check && $0.level != "ok" }
      }
    }

    /// Runs the doctor with `launcher`; its exit code and its report must agree.
    private func report(
      _ sandbox: Sandbox, _ options: [String] = [], launcher: [String] = [],
      environment: [String: String] = [:], cache: String? = nil
    ) throws -> Report {
      let own = ["HOME": sandbox.directory, "XDG_CONFIG_HOME": sandbox.path("config")]
      let result = try run(
        launcher + [try Products.httpfs, "doctor", "--json"]
          + ["--cache-dir", cache ?? sandbox.path("cache")] + options,
        environment: own.merging(environment) { $1 }, within: .seconds(30))
      let report = try JSONDecoder().decode(Report.self, from: Data(result.output.utf8))
      #expect(result.ending == .exited(report.fit ? 0 : 1))
      #expect(report.fit == report.findings.allSatisfy { $0.level != "error" })
      for finding in report.findings {
        #expect(["ok", "warning", "error"].contains(finding.level))
        #expect((finding.advice == nil) == (finding.level == "ok"), "\(finding)")
      }
      return report
    }

    @Test func `this machine is fit`() throws {
      let sandbox = try Sandbox()
      let report = try report(sandbox)
      #expect(report.fit, "\(report.findings.filter { $0.level != "ok" })")
      for check in ["fuse-device", "fusermount3", "cache", "libcurl", "kernel", "clock", "config"] {
        #expect(report.complaint(of: check) == nil)
        #expect(report.findings.contains { $0.check == check }, "\(check)")
      }
      // The doctor leaves no files behind.
      #expect(access(sandbox.path("cache"), F_OK) != 0)
      let text = try output(
        of: [try Products.httpfs, "doctor", "--cache-dir", sandbox.path("cache")],
        environment: ["XDG_CONFIG_HOME": sandbox.directory], within: .seconds(30))
      #expect(text.contains("ok   /dev/fuse can be opened"))
    }

    @Test(.enabled(if: Host.isRoot, "needs root, for a mount namespace"))
    func `a machine without /dev/fuse is told to load the module`() throws {
      let sandbox = try Sandbox()
      let devices = try sandbox.makeDirectory("dev")
      let script = """
        mknod -m 666 \(quoted(devices))/null c 1 3 && mount --bind \(quoted(devices)) /dev &&
        exec "$@"
        """
      let report = try report(
        sandbox,
        launcher: MountNamespace.launcher(script: script))
      let finding = try #require(report.complaint(of: "fuse-device"))
      #expect(finding.level == "error" && finding.advice?.contains("modprobe fuse") == true)
    }

    @Test(.enabled(if: Host.isRoot, "needs root, to become another user"))
    func `an ordinary user is told what fusermount3 lacks`() throws {
      let sandbox = try Sandbox()
      let programs = try sandbox.makeDirectory("bin")
      func complaint() throws -> Report.Finding? {
        try report(
          sandbox, launcher: OrdinaryUserMount.asUser,
          environment: ["PATH": programs + ":" + sandbox.path("none")],
          cache: "/tmp/httpfs-no-such-cache"
        ).complaint(of: "fusermount3")
      }
      let missing = try #require(try complaint())
      #expect(missing.level == "error" && missing.message.contains("not in PATH"))
      try sandbox.write("#!/bin/sh\n", to: "bin/fusermount3")
      try #require(chmod("\(programs)/fusermount3", 0o755) == 0)
      let plain = try #require(try complaint())
      #expect(plain.advice == "run 'chmod u+s \(programs)/fusermount3' as root")
      try #require(chmod("\(programs)/fusermount3", 0o4755) == 0)
      #expect(try complaint() == nil)
    }

    @Test func `a cache directory that others may read, or that is none, is named`() throws {
      let sandbox = try Sandbox()
      let open = try sandbox.makeDirectory("open")
      try #require(chmod(open, 0o755) == 0)
      #expect(
        try report(sandbox, cache: open).complaint(of: "cache")?.advice == "run 'chmod 700 \(open)'"
      )
      try #require(chmod(open, 0o700) == 0)
      #expect(
        try report(sandbox, cache: open).complaint(of: "cache")?.message.contains(open) != true)
      let file = try sandbox.write("", to: "file")
      #expect(try report(sandbox, cache: file).complaint(of: "cache")?.level == "error")
      let link = sandbox.path("link")
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: open)
      #expect(
        try report(sandbox, cache: link).complaint(of: "cache")?.message.contains("symbolic link")
          == true)
    }

    @Test(.enabled(if: Host.isRoot, "needs root, for file systems of its own"))
    func `a cache on a small, full or volatile disk is warned of`() throws {
      let sandbox = try Sandbox()
      let disk = try sandbox.tinyDisk(byteCount: 1 << 20)
      func complaints(_ cache: String) throws -> [Report.Finding] {
        try report(sandbox, cache: cache).findings.filter {
          $0.check == "cache" && $0.level != "ok"
        }
      }
      let volatile = try complaints("\(disk.path)/cache")
      #expect(volatile.contains { $0.message.contains("free for the cache") })
      #expect(volatile.contains { $0.message.contains("tmpfs") })
      #expect(volatile.allSatisfy { $0.level == "warning" })
      _ = try? shell("cat /dev/zero > \(quoted(disk.path))/full || true")
      #expect(try complaints("\(disk.path)/cache").contains { $0.level == "error" })

      let few = try sandbox.makeDirectory("few")
      try output(of: ["mount", "-t", "tmpfs", "-o", "size=2G,nr_inodes=20", "tmpfs", few])
      defer { _ = umount2(few, CInt(MNT_DETACH)) }
      #expect(try complaints("\(few)/cache").contains { $0.message.contains("inodes") })
    }

    @Test func `certificates, proxies and netrc are looked at`() throws {
      let sandbox = try Sandbox()
      let without = try report(
        sandbox, environment: ["SSL_CERT_FILE": sandbox.path("none.pem")])
      #expect(without.complaint(of: "certificates")?.advice?.contains("ca-certificates") == true)
      let proxied = try report(
        sandbox, environment: ["https_proxy": "http://user:abc123@127.0.0.1:3128"])
      let proxy = try #require(proxied.findings.first { $0.check == "proxy" })
      #expect(proxy.level == "ok" && proxy.message.contains("@127.0.0.1:3128"))
      #expect(!proxy.message.contains("abc123"))
      #expect(
        try report(sandbox, environment: ["http_proxy": "ftp://127.0.0.1"])
          .complaint(of: "proxy")?.message.hasPrefix("http_proxy: ") == true)
      try sandbox.write("machine h login u password abc123\n", to: ".netrc")
      try #require(chmod(sandbox.path(".netrc"), 0o644) == 0)
      let netrc = try #require(try report(sandbox).complaint(of: "netrc"))
      #expect(netrc.advice?.contains("chmod 600 \(sandbox.path(".netrc"))") == true)
      try #require(chmod(sandbox.path(".netrc"), 0o600) == 0)
      #expect(try report(sandbox).findings.contains { $0.check == "netrc" && $0.level == "ok" })
    }

    @Test func `few open files and a wrong clock are warned of`() throws {
      let sandbox = try Sandbox()
      let few = try report(sandbox, launcher: ["sh", "-c", "ulimit -n 100; exec \"$@\"", "sh"])
      #expect(few.complaint(of: "open-files")?.message == "at most 100 open files")
      let clock = try FakeClock(sandbox)
      try clock.set(days: -9000)
      let early = try report(sandbox, launcher: clock.launcher + ["NO_FAKE_STAT=1"])
      #expect(early.complaint(of: "clock")?.advice?.contains("timedatectl") == true)
    }

    @Test func `a configuration file with an error is one that nothing can be mounted with`() throws
    {
      let sandbox = try Sandbox()
      _ = try sandbox.makeDirectory("config/httpfs")
      let path = try sandbox.write(
        "[mounts.a]\nsource = \"x\"\nconections = 3\n", to: "config/httpfs/config.toml")
      let report = try report(sandbox)
      let finding = try #require(report.complaint(of: "config"))
      #expect(finding.level == "error" && finding.message.hasPrefix("\(path):3: "))
      let good = try sandbox.write("[mounts.a]\nsource = \"x\"\n", to: "good.toml")
      let other = try self.report(sandbox, ["--config", good])
      #expect(other.findings.contains { $0.check == "config" && $0.message.contains("@a") })
      #expect(try self.report(sandbox, ["--no-config"]).fit)
    }

    @Test func `a mount whose daemon is dead is found, with what clears it away`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("d.bin", length: 1000, seed: 331)])
      #expect(
        try report(sandbox).complaint(of: "mounts")?.message.contains(mount.mountpoint) != true)
      // The watchdog would remove the mount sooner or later, so it is stopped first.
      let watchdogs = ProcessTable.watchdogs(of: mount.mountpoint)
      for watchdog in watchdogs { kill(watchdog, SIGSTOP) }
      defer { for watchdog in watchdogs { kill(watchdog, SIGCONT) } }
      mount.process.signal(SIGKILL)
      try #require(mount.process.wait(within: .seconds(10)) != nil)
      let dead = try report(sandbox).findings.first { $0.message.contains(mount.mountpoint) }
      #expect(dead?.advice?.hasPrefix("run 'httpfs unmount --lazy \(mount.mountpoint)'") == true)
      try output(of: [try Products.httpfs, "unmount", "--lazy", mount.mountpoint])
      #expect(
        try !report(sandbox).findings.contains { $0.message.contains(mount.mountpoint) })
    }
  }
}
