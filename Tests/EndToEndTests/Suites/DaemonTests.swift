import Foundation
import Glibc
import Testing

/// Feature A8: the daemon's life, signals, and the reload of the list.
extension RealMounts {
  @Suite struct Daemons {
    @Test(arguments: ["unmount", "SIGTERM"])
    func `--daemon returns once the mount can be read, and ends as asked`(way: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let list = try sandbox.write(
        origin.url("d.bin", length: 100_000, seed: 141) + "\n", to: "urls.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      defer { _ = try? run(["fusermount3", "-u", "-z", mountpoint]) }
      let log = sandbox.path("httpfs.log")
      // A daemon that kept its starter's output open would keep this shell's pipe from ending.
      let command =
        "\(quoted(try Products.httpfs)) mount --daemon --cache-dir \(quoted(sandbox.path("cache")))"
        + " --log-file \(quoted(log)) \(quoted(list)) \(quoted(mountpoint)) | cat"
      try shell(command, within: .seconds(20))
      #expect(MountTable.httpfs(at: mountpoint) != nil)
      let line = try output(of: ["sha256sum", "\(mountpoint)/d.bin"], within: .seconds(20))
      #expect(line.prefix(64) == Digest.ofContent(seed: 141, byteCount: 100_000))

      let pid = try #require(try daemonProcess(of: mountpoint))
      if way == "unmount" {
        try output(of: [try Products.httpfs, "unmount", mountpoint], within: .seconds(20))
      } else {
        #expect(Glibc.kill(pid, SIGTERM) == 0)
      }
      let gone = Deadline(after: .seconds(10)).wait {
        MountTable.httpfs(at: mountpoint) == nil && access("/proc/\(pid)", F_OK) != 0
      }
      #expect(gone)
    }

    @Test func `--daemon fails in the foreground where the mount fails`() throws {
      let sandbox = try Sandbox()
      let list = try sandbox.write("http://127.0.0.1:9/a\n", to: "urls.txt")
      let result = try run(
        [try Products.httpfs, "mount", "--daemon", "--cache-dir", sandbox.path("cache"), list]
          + [sandbox.path("no-such-directory")], within: .seconds(20))
      #expect(result.ending == .exited(1))
      #expect(result.error.hasPrefix("httpfs: "))
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `a signal ends the foreground cleanly`(signal: CInt) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("d.bin", length: 1000, seed: 142)])
      mount.process.signal(signal)
      #expect(mount.process.wait(within: .seconds(10)) == .exited(0))
      #expect(!mount.isMounted)
    }

    @Test func `httpfs unmount ends the foreground cleanly`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("d.bin", length: 1000, seed: 142)])
      try output(of: [try Products.httpfs, "unmount", mount.mountpoint])
      #expect(mount.process.wait(within: .seconds(10)) == .exited(0))
      let again = try run([try Products.httpfs, "unmount", mount.mountpoint])
      #expect(again.ending == .exited(1))
      #expect(again.error.hasPrefix("httpfs: "))
    }

    @Test func `standard input is a list`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let list = try sandbox.write(
        origin.url("i.bin", length: 5000, seed: 143) + "\n", to: "urls.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      let child = try ChildProcess(
        [try Products.httpfs, "mount", "--cache-dir", sandbox.path("cache"), "-", mountpoint],
        input: .file(list))
      defer {
        child.signal(SIGTERM)
        _ = child.wait(within: .seconds(5))
        _ = try? run(["fusermount3", "-u", "-z", mountpoint])
      }
      #expect(
        Deadline(after: .seconds(20)).wait {
          child.standardOutput.contains("mounted \(mountpoint) (1 file")
        },
        "\(child.standardError)")
      let line = try output(of: ["sha256sum", "\(mountpoint)/i.bin"], within: .seconds(20))
      #expect(line.prefix(64) == Digest.ofContent(seed: 143, byteCount: 5000))
    }

    @Test func `SIGHUP reloads the list and leaves open files alone`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 16 << 20
      func url(_ name: String, _ seed: UInt64) -> String {
        origin.url(name, length: length, seed: seed)
      }
      let list = try sandbox.write("\(url("a.bin", 1))\n\(url("b.bin", 2))\n", to: "urls.txt")
      let mount = try sandbox.mount(source: list)
      #expect(try output(of: ["ls", mount.mountpoint]) == "a.bin\nb.bin\n")
      let open = try HeldFile(mount.path("a.bin"))
      #expect(try open.length() == length)

      try sandbox.write("\(url("b.bin", 2))\n\(url("c.bin", 3))\n", to: "urls.txt")
      mount.process.signal(SIGHUP)
      let reloaded = try Deadline(after: .seconds(10)).wait(every: .milliseconds(50)) {
        try output(of: ["ls", mount.mountpoint]) == "b.bin\nc.bin\n"
      }
      #expect(reloaded)
      // The removed file is gone for new opens, once the kernel's entry has timed out, and reads on
      // for the old one.
      let removed = try Deadline(after: .seconds(10)).wait(every: .milliseconds(100)) {
        try run(["head", "-c", "1", mount.path("a.bin")]).error.contains("No such file")
      }
      #expect(removed)
      #expect(
        try open.read(at: 10_000_000, 65536)
          == .bytes(
            count: 65536, sha256: Digest.ofContent(seed: 1, offset: 10_000_000, byteCount: 65536)))
      #expect(try mount.sha256("c.bin") == Digest.ofContent(seed: 3, byteCount: length))
      #expect(try mount.sha256("b.bin") == Digest.ofContent(seed: 2, byteCount: length))

      // A list that became bad changes nothing.
      try sandbox.write("no URL at all\n", to: "urls.txt")
      mount.process.signal(SIGHUP)
      pause(for: .milliseconds(500))
      #expect(try output(of: ["ls", mount.mountpoint]) == "b.bin\nc.bin\n")
      #expect(mount.process.isRunning)
    }

    @Test func `after a crash a new mount at the same place works at once`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("d.bin", length: 1 << 20, seed: 144)
      let mount = try sandbox.mount(urls: [url])
      #expect(try mount.sha256("d.bin") == Digest.ofContent(seed: 144, byteCount: 1 << 20))
      try mount.crash()
      let second = sandbox.adopt(
        try Mount(
          source: url, mountpoint: mount.mountpoint, cacheDirectory: mount.cacheDirectory))
      #expect(try second.sha256("d.bin") == Digest.ofContent(seed: 144, byteCount: 1 << 20))
      #expect(try second.unmount() == .exited(0))
    }

    /// The process that serves the mount: the one whose command line names the mount point.
    private func daemonProcess(of mountpoint: String) throws -> pid_t? {
      let processes = try FileManager.default.contentsOfDirectory(atPath: "/proc")
      return processes.compactMap { pid_t($0) }.first { pid in
        let words = (FileManager.default.contents(atPath: "/proc/\(pid)/cmdline") ?? Data())
          .split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        return words.first?.hasSuffix("httpfs") == true && words.contains(mountpoint)
      }
    }
  }
}
