import Foundation
import Glibc
import Testing

/// The daemon's life, its signals, and the reload of the list.
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
      // If the daemon kept its starter's output open, this shell's pipe would not end.
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
      // A process ends only when its disk has answered; scripts/torture hostile has a short limit.
      #expect(mount.process.wait(within: .seconds(30)) == .exited(0))
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
      // After the kernel's entry has timed out, new opens do not find the removed file; the old
      // handle can still read it.
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

      // A list that became invalid changes nothing.
      try sandbox.write("no URL at all\n", to: "urls.txt")
      mount.process.signal(SIGHUP)
      pause(for: .milliseconds(500))
      #expect(try output(of: ["ls", mount.mountpoint]) == "b.bin\nc.bin\n")
      #expect(mount.process.isRunning)
    }

    /// Replaces the lines of a list atomically, and makes the mount read it.
    private func reload(
      _ mount: Mount, _ list: String, _ lines: [String], _ sandbox: Sandbox
    ) throws {
      let new = try sandbox.write(lines.joined(separator: "\n") + "\n", to: "new-urls.txt")
      let names = lines.map { String($0.split(separator: "=").last ?? "") }
      #expect(rename(new, list) == 0)
      mount.process.signal(SIGHUP)
      let isReloaded = try Deadline(after: .seconds(20)).wait(every: .milliseconds(50)) {
        let shown = try output(of: ["ls", mount.mountpoint]).split(separator: "\n").map(String.init)
        return Set(shown) == Set(names)
      }
      #expect(isReloaded)
    }

    @Test(arguments: ["the same name", "another name"])
    func `a file that leaves the list and comes back while it is read is fetched once`(
      under name: String
    ) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 24 << 20
      let url = origin.url("f.bin", length: length, seed: 145, query: "rate=8m")
      let other = origin.url("other.bin", length: 1000, seed: 146) + "\n  out=other.bin"
      let back = name == "the same name" ? "f.bin" : "g.bin"
      let list = try sandbox.write("\(url)\n  out=f.bin\n\(other)\n", to: "urls.txt")
      let mount = try sandbox.mount(source: list)
      let file = try HeldFile(mount.path("f.bin"))
      _ = try file.read(at: 0, 1 << 20)
      try reload(mount, list, [other], sandbox)
      try reload(mount, list, ["\(url)\n  out=\(back)", other], sandbox)
      // A look-up of the new name must not end the recording of the open handle.
      try output(of: ["stat", mount.path(back)])
      for place in stride(from: Int64(0), to: length, by: 1 << 20) {
        #expect(
          try file.read(at: place, 1 << 20)
            == .bytes(
              count: 1 << 20,
              sha256: Digest.ofContent(seed: 145, offset: place, byteCount: 1 << 20)))
      }
      file.close()
      #expect(try mount.sha256(back) == Digest.ofContent(seed: 145, byteCount: length))
      #expect(try mount.unmount() == .exited(0))
      let sent = try origin.requests().bodyByteCount
      // Sockets hold a few MiB of a request that is cut; a second copy would be 24 MiB.
      #expect(sent < length + 12 << 20, "\(sent) bytes were sent")
      let next = try sandbox.mount(source: list)
      #expect(try next.sha256(back) == Digest.ofContent(seed: 145, byteCount: length))
      #expect(try next.unmount() == .exited(0))
      #expect(try origin.requests().bodyByteCount - sent < 1 << 20, "fetched again")
    }

    @Test func `a list that is read again for ever does not keep the mount from its end`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let list = try sandbox.write(
        origin.url("d.bin", length: 100_000, seed: 147) + "\n", to: "urls.txt")
      let mount = try sandbox.mount(source: list)
      #expect(try mount.sha256("d.bin") == Digest.ofContent(seed: 147, byteCount: 100_000))
      // A process that opens the FIFO to read waits for a writer.
      try output(of: ["rm", list])
      try output(of: ["mkfifo", list])
      mount.process.signal(SIGHUP)
      pause(for: .milliseconds(500))
      let start = ContinuousClock.now
      mount.process.signal(SIGTERM)
      #expect(mount.process.wait(within: .seconds(10)) == .exited(0))
      #expect(ContinuousClock.now - start < .seconds(4), "\(ContinuousClock.now - start)")
      #expect(!mount.isMounted)
      let next = try sandbox.mount(urls: [origin.url("d.bin", length: 100_000, seed: 147)])
      #expect(try next.unmount() == .exited(0))
    }

    @Test func `reads that wait at the end are answered, and never into another file`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let urls = (0..<32).map {
        origin.url(
          "s\($0).bin", length: 8 << 20, seed: 148, query: "fault=stall&fault-at=0&fault-from=2")
      }
      let mount = try sandbox.mount(urls: urls)
      // The first request of each file is answered.
      try output(of: ["ls", "-l", mount.mountpoint])
      let readers = try (0..<32).map {
        try sandbox.start(["tail", "--bytes=+2000000", mount.path("s\($0).bin")])
      }
      let areWaiting = try Deadline(after: .seconds(20)).wait(every: .milliseconds(50)) {
        try mount.status().files.count { !$0.waitingReads.isEmpty } == urls.count
      }
      #expect(areWaiting)
      mount.process.signal(SIGTERM)
      #expect(mount.process.wait(within: .seconds(10)) == .exited(0))
      for reader in readers { #expect(reader.wait(within: .seconds(30)) == .exited(1)) }
      // libfuse logs this if an answer finds the device closed.
      #expect(!mount.process.standardError.contains("writing device"))
      #expect(!mount.isMounted)
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
