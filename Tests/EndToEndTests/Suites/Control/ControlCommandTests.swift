import Foundation
import Glibc
import Testing

/// The subcommands for the commands of `.control`.
extension RealMounts {
  @Suite struct ControlCommands {
    private func mount(_ sandbox: Sandbox, _ origin: OriginServer) throws -> Mount {
      try sandbox.mount(urls: [
        origin.url("a.bin", length: 100_000, seed: 1),
        origin.url("b.bin", length: 100_000, seed: 2),
        origin.url("x", length: 10_000, seed: 3) + "\n dir=some dir\n out=[c] \"d\".bin",
      ])
    }

    private func httpfs(_ arguments: String...) throws -> CommandResult {
      try run([try Products.httpfs] + arguments, within: .seconds(20))
    }

    @Test func `they do what .control does, say nothing, and take paths that the shell completes`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(sandbox, origin)
      let odd = "some dir/[c] \"d\".bin"
      for arguments in [
        ["pause", mount.mountpoint], ["resume", mount.mountpoint, "b*", mount.path("a.bin")],
        ["resume", mount.mountpoint + "/", odd], ["pin", mount.mountpoint, mount.path(odd)],
        ["prefetch", mount.mountpoint, "*"], ["connections", mount.mountpoint, "4"],
        ["rate-limit", mount.mountpoint, "50M"], ["verify", mount.mountpoint, "a.bin"],
        ["refresh", mount.mountpoint, odd], ["refresh", mount.mountpoint],
      ] {
        let result = try run([try Products.httpfs] + arguments, within: .seconds(20))
        #expect(result.succeeded, "\(arguments): \(result.error)")
        #expect(result.output + result.error == "")
      }
      let isComplete = try Deadline(after: .seconds(20)).wait(every: .milliseconds(50)) {
        try mount.status().files.allSatisfy { $0.state == "complete" }
      }
      #expect(isComplete)
      #expect(try mount.status().files.map(\.pinned) == [false, false, true])
      #expect(try httpfs("unpin", mount.mountpoint, odd).succeeded)
      #expect(try httpfs("cancel", mount.mountpoint, "*").succeeded)
      #expect(try httpfs("evict", mount.mountpoint, "*").succeeded)
      let isEvicted = try Deadline(after: .seconds(10)).wait(every: .milliseconds(50)) {
        try mount.status().files.allSatisfy { $0.cachedByteCount == 0 }
      }
      #expect(isEvicted)
    }

    @Test func `what is wrong is said in a line, with what to do, and nothing is changed`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(sandbox, origin)
      let point = mount.mountpoint
      let missing = try httpfs("pause", point, "a.bin", "nosuch", "*.iso")
      #expect(missing.ending == .exited(1))
      #expect(
        missing.error.split(separator: "\n").map { $0.prefix(while: { $0 != ";" }) } == [
          "httpfs: no file 'nosuch' in \(point)", "httpfs: no file '*.iso' in \(point)",
        ])
      #expect(try httpfs("pin", point, "b.bin").succeeded)
      let pinned = try httpfs("evict", point, "*")
      #expect(pinned.error.hasPrefix("httpfs: 'b.bin' is pinned"), "\(pinned.error)")
      _ = try mount.sha256("a.bin")
      let held = try HeldFile(mount.path("a.bin"))
      let busy = try httpfs("evict", point, "a.bin")
      #expect(busy.error.hasPrefix("httpfs: nothing was evicted: a file is open"), "\(busy.error)")
      held.close()
      #expect(try mount.status().files.map(\.state) == ["complete", "unknown", "unknown"])
      let nowhere = try httpfs("pause", sandbox.directory)
      #expect(nowhere.error.contains("nothing is mounted"), "\(nowhere.error)")
      for arguments in [
        ["evict", point], ["prefetch", point], ["connections", point, "65"],
        ["connections", point, "x"], ["rate-limit", point, "10X"], ["rate-limit", point],
      ] {
        let result = try run([try Products.httpfs] + arguments)
        #expect(result.ending == .exited(64), "\(arguments)")
        #expect(result.error.contains("Usage: httpfs \(arguments[0]) "), "\(result.error)")
      }
    }

    @Test func `refresh waits for the list, and fails with the reason until it can be read`() throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 1000, seed: 1)
      let list = try sandbox.write("\(url)\n", to: "urls.txt")
      let mount = try sandbox.mount(source: list)
      func status() throws -> String { try output(of: ["cat", mount.path(".status")]) }
      try sandbox.write("no URL at all\n", to: "urls.txt")
      let broken = try httpfs("refresh", mount.mountpoint)
      #expect(broken.ending == .exited(1))
      #expect(broken.error.hasPrefix("httpfs: list not reloaded: "), "\(broken.error)")
      #expect(broken.error.contains("urls.txt:1: "), "\(broken.error)")
      #expect(try status().contains("\nlist not reloaded: "))
      try shell("rm \(quoted(list))")
      let missing = try httpfs("refresh", mount.mountpoint)
      #expect(missing.error.contains("No such file"), "\(missing.error)")
      try sandbox.write("\(url)\n out=b.bin\n", to: "urls.txt")
      #expect(try httpfs("refresh", mount.mountpoint).succeeded)
      #expect(access(mount.path("b.bin"), F_OK) == 0)
      #expect(try !status().contains("not reloaded"))
      // Nobody writes to the pipe: reading it would not end.
      try shell("rm \(quoted(list)); mkfifo \(quoted(list))")
      let pipe = try httpfs("refresh", mount.mountpoint)
      #expect(pipe.error.contains("is no regular file any more"), "\(pipe.error)")
      #expect(try httpfs("pin", mount.mountpoint, "b.bin").succeeded)
      let single = try sandbox.mount(source: url, cache: "other")
      let none = try httpfs("refresh", single.mountpoint)
      #expect(none.error.contains("has no list file"), "\(none.error)")
    }

    @Test func `a file of a listing can be named before anybody has looked it up`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      try shell(
        "mkdir \(quoted(root))/d \(quoted(root))/bad; echo hello > \(quoted(root))/d/hello.txt")
      let server = try sandbox.nginx(
        root: root, locations: "autoindex on; location /bad/ { return 403; }")
      let mount = try sandbox.mount(source: server.url(""))
      let pattern = try httpfs("pin", mount.mountpoint, "d/*.iso")
      #expect(pattern.error.contains("run 'find \(mount.mountpoint)' first"), "\(pattern.error)")
      let named = try httpfs("pin", mount.mountpoint, "d/hello.txt")
      #expect(named.succeeded, "\(named.error)")
      let other = try httpfs("pin", mount.mountpoint, "d/other.txt")
      #expect(other.error.contains("no file 'd/other.txt'"), "\(other.error)")
      let unknown = try httpfs("pin", mount.mountpoint, "bad/x.txt")
      #expect(unknown.ending == .exited(1))
      #expect(unknown.error.contains("cannot look up 'bad/x.txt'"), "\(unknown.error)")
    }

    @Test func `more names than one write may bring are given in several`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let names = (0..<200).map { "a file with quite a long name, number \($0).bin" }
      let mount = try sandbox.mount(
        urls: names.map { origin.url("x", length: 10, seed: 1) + "\n out=\($0)" })
      let result = try run([try Products.httpfs, "pin", mount.mountpoint] + names)
      #expect(result.succeeded, "\(result.error)")
      #expect(try mount.status().files.allSatisfy { $0.pinned })
    }
  }
}
