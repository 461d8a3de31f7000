import Foundation
import Glibc
import Testing

/// The basis of the tests of failing calls: exactly the chosen calls fail.
extension RealMounts {
  @Suite struct FailingCallsHarness {
    @Test func `the Nth call fails as planned, is logged, and those elsewhere are not`() throws {
      let sandbox = try Sandbox()
      let directory = try sandbox.makeDirectory("inside")
      let failing = try FailingCalls(below: directory, in: sandbox)
      try failing.fail(
        FailingCalls.Plan(calls: "pwrite,fsync", filePrefix: "d", first: 2, errno: ENOSPC))
      let script = """
        import errno, os, sys
        for path in sys.argv[1:]:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
            for place in range(3):
                try:
                    print(os.pwrite(descriptor, b"12345678", 8 * place))
                except OSError as error:
                    print(errno.errorcode[error.errno])
            os.close(descriptor)
        """
      let paths = ["\(directory)/data", "\(directory)/other", sandbox.path("data")]
      let text = try output(of: try failing.launcher + Python.command(script) + paths)
      #expect(text == "8\nENOSPC\n8\n8\n8\n8\n8\n8\n8\n")
      let calls = try failing.calls()
      #expect(
        calls.map(\.name) == ["openat"] + ["pwrite", "pwrite", "pwrite"] + ["openat"] + [
          "pwrite", "pwrite", "pwrite",
        ])
      #expect(calls.map(\.position) == [0, 1, 2, 3, 0, 0, 0, 0])
      #expect(
        calls[2].outcome == .failed(ENOSPC) && calls[2].offset == 8 && calls[2].byteCount == 8)
      #expect(calls[4...].allSatisfy { $0.path == "other" && $0.outcome == .done })
    }

    @Test func `a daemon in the background has the plan, and it may change`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "a.bin", seed: 3, byteCount: 100_000)
      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      let list = try sandbox.write(file.url(origin) + "\n", to: "list.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      defer { _ = try? run([Products.httpfs, "unmount", mountpoint]) }
      try output(
        of: try failing.launcher + [
          try Products.httpfs, "mount", "--daemon", "--cache-dir", failing.directory,
          "--log-file", sandbox.path("log"), list, mountpoint,
        ], within: .seconds(20))
      #expect(try failing.calls().contains { $0.name == "flock" && $0.outcome == .done })
      try failing.fail(FailingCalls.Plan(calls: "pwrite", effect: .short))
      let line = try output(of: ["sha256sum", "\(mountpoint)/\(file.name)"], within: .seconds(20))
      #expect(line.prefix(64) == file.digest)
      #expect(try failing.calls().contains { $0.outcome == .short })
    }
  }
}
