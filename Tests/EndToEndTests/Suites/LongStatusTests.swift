import Foundation
import Glibc
import Testing

/// The status of a mount of very many files.
///
/// It is produced while it is read, in memory that does not grow with the number of files.
extension RealMounts {
  @Suite struct LongStatus {
    private static let count = 200_000

    private func mount(in sandbox: Sandbox) throws -> Mount {
      let list = try sandbox.write(
        (0..<Self.count).map { "http://127.0.0.1:9/directory/file-\($0).bin\n" }.joined(),
        to: "urls.txt")
      return try sandbox.mount(source: list)
    }

    /// The maximum growth of the daemon's memory while `body` runs.
    private func growth(of mount: Mount, _ body: () throws -> Void) throws -> Int64 {
      // Resets the peak (proc(5)).
      let process = mount.process.processID
      try "5".write(toFile: "/proc/\(process)/clear_refs", atomically: false, encoding: .utf8)
      let before = try mount.peakResidentByteCount
      try body()
      return try mount.peakResidentByteCount - before
    }

    /// A whole report took 136 MiB.
    ///
    /// The part of it that is kept, with the allocator's overhead, is far less.
    @Test(arguments: [".status.json", ".status", ".metrics"])
    func `reading it takes memory for what is kept of it, not for all of it`(name: String) throws {
      let sandbox = try Sandbox()
      let mount = try mount(in: sandbox)
      let growth = try growth(of: mount) {
        for _ in 0..<2 {
          try output(of: ["sh", "-c", "cat \(quoted(mount.path(name))) > /dev/null"])
        }
      }
      print("\(name) of \(Self.count) files: \(growth >> 10) KiB more")
      #expect(growth <= 40 << 20, "\(growth >> 10) KiB")
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `it names each file once, in order, and the commands show the same`() throws {
      let sandbox = try Sandbox()
      let mount = try mount(in: sandbox)
      let script = """
        import json, sys
        names = [file["name"] for file in json.load(sys.stdin)["files"]]
        assert names == [f"file-{index}.bin" for index in range(\(Self.count))], names[:3]
        print("right")
        """
      for command in [
        "cat \(mount.path(".status.json"))",
        "\(try Products.httpfs) status --json \(mount.mountpoint)",
      ] {
        let text = try shell("\(command) | python3 -c '\(script)'")
        #expect(text == "right\n", "\(command)")
      }
      let lines = try shell("\(try Products.httpfs) status \(mount.mountpoint) | wc -l")
      #expect(Int(lines.trimmingCharacters(in: .whitespacesAndNewlines)) == Self.count + 6)
      // A reader that seeks far back gets an error.
      let seeker = """
        import os, sys
        file = os.open(sys.argv[1], os.O_RDONLY)
        while os.read(file, 1 << 20): pass
        try: os.pread(file, 10, 0)
        except OSError as error: print(error.errno)
        """
      let errno = try output(of: Python.command(seeker) + [mount.path(".status.json")])
      #expect(errno == "\(ESPIPE)\n")
      #expect(try mount.unmount() == .exited(0))
    }

    /// Each of many parallel readers keeps a window, and a reload of the list disturbs none of
    /// them.
    @Test func `readers in the middle of it go on while the list is read again`() throws {
      let sandbox = try Sandbox()
      let mount = try mount(in: sandbox)
      let reader = """
        import json, os, sys
        file = os.open(sys.argv[1], os.O_RDONLY)
        data = os.read(file, 65536)
        print("begun", flush=True)
        sys.stdin.readline()
        while True:
            piece = os.read(file, 1 << 20)
            if not piece: break
            data += piece
        print(len(json.loads(data)["files"]), flush=True)
        """
      let process = try sandbox.start(
        Python.command(reader) + [mount.path(".status.json")], input: .pipe)
      #expect(Deadline(after: .seconds(20)).wait { process.standardOutput.contains("begun") })
      try sandbox.write("http://127.0.0.1:9/other.bin\n", to: "urls.txt")
      mount.process.signal(SIGHUP)
      #expect(
        Deadline(after: .seconds(20)).wait {
          (try? FileManager.default.contentsOfDirectory(atPath: mount.mountpoint)) == ["other.bin"]
        })
      process.closeInput()
      #expect(process.wait(within: .seconds(60)) == .exited(0))
      #expect(process.standardOutput.contains("\n\(Self.count)\n"), "\(process.standardError)")
      #expect(try mount.unmount() == .exited(0))
    }
  }
}
