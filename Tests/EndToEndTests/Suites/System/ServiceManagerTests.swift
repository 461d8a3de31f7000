import Foundation
import Glibc
import Testing

/// The messages to a service manager.
extension RealMounts {
  @Suite struct ServiceManagers {
    @Test(arguments: [false, true])
    func `a service manager hears of readiness, reloads and the end`(isAbstract: Bool) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("n.bin", length: 1000, seed: 181)
      let list = try sandbox.write(url + "\n", to: "urls.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      let socket = try NotifySocket(
        name: isAbstract
          ? "@httpfs-test-\(getpid())-\(UInt32.random(in: 0 ... .max))" : sandbox.path("notify"))
      let mount = sandbox.adopt(
        try Mount(
          source: list, mountpoint: mountpoint, cacheDirectory: sandbox.path("cache"),
          launcher: ["env", "NOTIFY_SOCKET=\(socket.name)"]))
      let ready = try socket.next()
      #expect(ready["READY"] == "1")
      #expect(ready["MAINPID"] == String(mount.process.processID))
      #expect(ready["STATUS"] == "1 file at \(mountpoint)")

      try sandbox.write("\(url)\n\(url)\n  out=again.bin\n", to: "urls.txt")
      mount.process.signal(SIGHUP)
      let reloading = try socket.next()
      #expect(reloading["RELOADING"] == "1")
      #expect(UInt64(reloading["MONOTONIC_USEC"] ?? "") != nil)
      let reloaded = try socket.next()
      #expect(reloaded["READY"] == "1")
      #expect(reloaded["STATUS"] == "2 files at \(mountpoint)")

      // A list with an error changes nothing, and the manager must not wait forever.
      try sandbox.write("no URL at all\n", to: "urls.txt")
      mount.process.signal(SIGHUP)
      #expect(try socket.next()["RELOADING"] == "1")
      let refused = try socket.next()
      #expect(refused["READY"] == "1")
      #expect(refused["STATUS"]?.contains("not reloaded") == true)

      mount.process.signal(SIGTERM)
      #expect(try socket.next()["STOPPING"] == "1")
      #expect(mount.process.wait(within: .seconds(10)) == .exited(0))
    }

    @Test func `with --daemon the process in the background reports as the main one`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mountpoint = try sandbox.makeDirectory("mnt")
      let socket = try NotifySocket(name: sandbox.path("notify"))
      defer { _ = try? run(["fusermount3", "-u", "-z", mountpoint]) }
      try output(
        of: [try Products.httpfs, "mount", "--daemon", "--cache-dir", sandbox.path("cache")]
          + [origin.url("n.bin", length: 1000, seed: 182), mountpoint],
        environment: ["NOTIFY_SOCKET": socket.name], within: .seconds(20))
      let ready = try socket.next()
      let process = try #require(pid_t(ready["MAINPID"] ?? ""))
      #expect(kill(process, SIGTERM) == 0)
      #expect(try socket.next()["STOPPING"] == "1")
      #expect(
        Deadline(after: .seconds(10)).wait { MountTable.httpfs(at: mountpoint) == nil })
    }

    @Test func `a manager that is not there does not matter`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      for name in [sandbox.path("nobody"), "@", "relative", String(repeating: "/long", count: 100)]
      {
        let mountpoint = try sandbox.makeDirectory("mnt")
        let mount = try Mount(
          source: origin.url("n.bin", length: 1000, seed: 183), mountpoint: mountpoint,
          cacheDirectory: sandbox.path("cache"), launcher: ["env", "NOTIFY_SOCKET=\(name)"])
        #expect(try mount.unmount() == .exited(0))
      }
    }
  }
}
