import Foundation
import Glibc
import Testing

/// What people type who know other tools: several mounts and sources, options in the style of
/// mount(8), and commands without a mount point.
extension RealMounts {
  @Suite struct MountHabits {
    /// A home directory without a cache, and mounts in it that end with the test.
    private final class Home {
      let sandbox: Sandbox
      private var mountpoints: [String] = []

      init() throws { sandbox = try Sandbox() }

      var environment: [String: String] {
        ["HOME": sandbox.directory, "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": ""]
      }

      func run(_ arguments: String..., within limit: Duration = .seconds(60)) throws
        -> CommandResult
      { try run(arguments, within: limit) }

      func run(_ arguments: [String], within limit: Duration) throws -> CommandResult {
        try EndToEndTests.run(
          [try Products.httpfs] + arguments, environment: environment, within: limit)
      }

      /// Mounts in the background; returns the mount point.
      func mount(_ name: String, _ words: String...) throws -> String {
        let mountpoint = try sandbox.makeDirectory(name)
        mountpoints.append(mountpoint)
        let result = try EndToEndTests.run(
          [try Products.httpfs, "mount", "--daemon"] + words + [mountpoint],
          environment: environment, within: .seconds(60))
        #expect(result.succeeded, "\(result.error)")
        return mountpoint
      }

      deinit {
        for mountpoint in mountpoints {
          _ = try? EndToEndTests.run(
            ["fusermount3", "-u", "-z", mountpoint], within: .seconds(20))
        }
      }
    }

    @Test func `mounts of other sources run at the same time, and find their caches again`() throws
    {
      let origin = try OriginServer()
      let home = try Home()
      let urls = ["a.bin", "b.bin"].map { origin.url($0, length: 100_000, seed: 1) }
      let places = try urls.enumerated().map { try home.mount("m\($0)", $1) }
      let names = ["a.bin", "b.bin"]
      for (place, name) in zip(places, names) {
        #expect(try digest(of: "\(place)/\(name)") == Digest.ofContent(seed: 1, byteCount: 100_000))
      }
      let listed = try home.run("mounts")
      for place in places {
        let line = try #require(listed.output.split(separator: "\n").first { $0.hasPrefix(place) })
        #expect(line.hasSuffix("ok"), "\(line)")
        #expect(line.contains("http://127.0.0.1:"), "\(line)")
      }
      let json = try JSONSerialization.jsonObject(
        with: Data(home.run("mounts", "--json").output.utf8))
      let mounts = try #require((json as? [String: Any])?["mounts"] as? [[String: String]])
      #expect(places.allSatisfy { place in mounts.contains { $0["mountpoint"] == place } })

      // The same source at another place.
      #expect(try home.run("umount", places[0]).succeeded)
      let count = try origin.requests().count
      let again = try home.mount("again", urls[0])
      #expect(
        try digest(of: "\(again)/a.bin") == Digest.ofContent(seed: 1, byteCount: 100_000))
      let later = try origin.requests().dropFirst(count)
      #expect(later.reduce(0) { $0 + $1.bodyByteCount } < 20_000)
      // One command shows all caches.
      let cached = try home.run("cache", "ls").output
      #expect(cached.contains("a.bin") && cached.contains("b.bin"), "\(cached)")
    }

    @Test func `a source can be mounted again right after its unmount, also in a prefetch`() throws
    {
      let origin = try OriginServer()
      let home = try Home()
      let url = origin.url("big.bin", length: 512 << 20, seed: 1, query: "latency=200")
      for round in 0..<4 {
        let place = try home.mount("m\(round)", url)
        #expect(try home.run("prefetch", place, "big.bin").succeeded)
        usleep(300_000)
        // The process stores what has arrived, and ends later.
        #expect(try home.run("unmount", place).succeeded)
      }
    }

    @Test func `several sources are mounted together, and a name in two of them is refused`() throws
    {
      let origin = try OriginServer()
      let home = try Home()
      let list = try home.sandbox.write(
        origin.url("a.bin", length: 1000, seed: 1) + "\n  out=d/a.bin\n", to: "list")
      let url = origin.url("b.bin", length: 2000, seed: 1)
      let place = try home.mount("m", list, url)
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: place).sorted() == ["b.bin", "d"])
      #expect(try digest(of: "\(place)/d/a.bin") == Digest.ofContent(seed: 1, byteCount: 1000))
      // The list can still be read again.
      try home.sandbox.write(
        origin.url("a.bin", length: 1000, seed: 1) + "\n  out=e/a.bin\n", to: "list")
      #expect(try home.run("refresh", place).succeeded)
      #expect(
        Deadline(after: .seconds(20)).wait { access("\(place)/e/a.bin", F_OK) == 0 })
      #expect(access("\(place)/b.bin", F_OK) == 0)

      let clash = try home.run("mount", url, url + "&x=1", try home.sandbox.makeDirectory("n"))
      #expect(clash.ending == .exited(1))
      #expect(clash.error.contains("'b.bin' is a name in both"), "\(clash.error)")
      // Only the query differs, so --tree would not help.
      #expect(clash.error.contains("out=NAME"), "\(clash.error)")
      #expect(!clash.error.contains("--tree"), "\(clash.error)")
    }

    @Test func `a URL that cannot work is refused with the reason and what to do`() throws {
      let origin = try OriginServer()
      let home = try Home()
      let place = try home.sandbox.makeDirectory("m")
      let missing = origin.fileURL("nothing")
      let result = try home.run("mount", "--daemon", missing, place)
      #expect(result.ending == .exited(1))
      #expect(result.error.hasSuffix("HTTP 404 Not Found; check the URL\n"), "\(result.error)")
      #expect(result.error.split(separator: "\n").count == 1, "\(result.error)")
      let refused = try home.run("mount", "--daemon", "http://127.0.0.1:9/a.bin", place)
      #expect(refused.ending == .exited(1))
      #expect(refused.error.contains("connection refused"), "\(refused.error)")
      #expect(refused.error.contains("--no-check"), "\(refused.error)")
      #expect(MountTable.httpfs(at: place) == nil)
      // No empty caches are left.
      let caches = home.sandbox.path(".cache/httpfs/mounts")
      #expect(try FileManager.default.contentsOfDirectory(atPath: caches).isEmpty)

      // Of several, each failure is a warning.
      let both = try home.run(
        "mount", "--daemon", missing, origin.url("a.bin", length: 10, seed: 1), place)
      defer { _ = try? home.run("unmount", place) }
      #expect(both.succeeded)
      #expect(both.error.contains("warning") && both.error.contains("HTTP 404"), "\(both.error)")
      #expect(access("\(place)/a.bin", F_OK) == 0)
      let other = try home.mount("n", "--no-check", missing)
      #expect(access("\(other)/nothing", F_OK) != 0)
    }

    @Test(arguments: [
      (["www.example.org/a.zip"], "write http:// or https:// before it"),
      (["http:///a"], "httpfs: malformed URL: no host"),
      (["--cache-size", "10", "http://127.0.0.1:9/a"], "--cache-size is 10 B"),
    ])
    func `what cannot be mounted is refused with how to write it`(
      _ words: [String], _ text: String
    ) throws {
      let home = try Home()
      let place = try home.sandbox.makeDirectory("m")
      let result = try home.run(["mount"] + words + [place], within: .seconds(20))
      #expect(result.error.contains(text), "\(result.error)")
      #expect(!result.error.contains("URL: malformed URL"), "\(result.error)")
    }

    @Test func `cache evict --to frees all caches that are not in use, oldest use first`() throws {
      let origin = try OriginServer()
      let home = try Home()
      for name in ["a.bin", "b.bin", "c.bin"] {
        let place = try home.mount("m-\(name)", origin.url(name, length: 1 << 20, seed: 1))
        _ = try digest(of: "\(place)/\(name)")
        if name != "c.bin" { #expect(try home.run("umount", place).succeeded) }
        // The time of a use is counted in seconds.
        pause(for: .milliseconds(1100))
      }
      let result = try home.run("cache", "evict", "--to", "1500K")
      #expect(result.succeeded, "\(result.error)")
      #expect(result.error.contains(" is left: process "), "\(result.error)")
      let lines = result.output.split(separator: "\n")
      #expect(lines.count == 2 && lines[0].contains("/a-bin-"), "\(lines)")
      #expect(try home.run("cache", "evict", "--to", "0").ending == .exited(64))
      #expect(try home.run("cache", "evict", "--to", "1").succeeded)
      let listed = try home.run("cache", "ls").output.split(separator: "\n")
      #expect(listed.contains { $0.hasPrefix("2 empty caches below ") }, "\(listed)")
    }

    @Test func `cache evict --to counts what it has removed, and names what it may not remove`()
      throws
    {
      let origin = try OriginServer()
      let home = try Home()
      for name in ["a.bin", "b.bin"] {
        let place = try home.mount("m-\(name)", origin.url(name, length: 1 << 20, seed: 1))
        _ = try digest(of: "\(place)/\(name)")
        #expect(try home.run("umount", place).succeeded)
      }
      try shell(
        "cd \(quoted(home.sandbox.directory))/.cache"
          + " && d=$(dirname \"$(find . -path '*/a-bin-*' -name record)\")"
          + " && head -c 5000 /dev/zero > \"$d/foreign\"")
      // The daemons may still be ending.
      var first = ""
      #expect(
        try Deadline(after: .seconds(20)).wait(every: .milliseconds(100)) {
          let result = try home.run("cache", "evict", "--to", "1")
          first += result.output
          return !result.error.contains(" is left: ")
        })
      let lines = first.split(separator: "\n")
      #expect(lines.count { $0.hasPrefix("removed 1 file") } == 2, "\(first)")
      let again = try home.run("cache", "evict", "--to", "1")
      #expect(again.ending == .exited(1))
      #expect(!again.output.contains("removed"), "\(again.output)")
      #expect(again.error.contains("that httpfs has not written"), "\(again.error)")
      #expect(!again.error.contains("pinned"), "\(again.error)")
    }

    @Test func `commands take complete paths, and options are given in the style of mount(8)`()
      throws
    {
      let origin = try OriginServer()
      let home = try Home()
      let place = try home.mount(
        "m", "-o", "ro,cache-size=10MiB,read_timeout=1m", "-v", "--read-only",
        origin.url("a.bin", length: 1000, seed: 1))
      _ = try digest(of: "\(place)/a.bin")
      #expect(try home.run("pin", "\(place)/a.bin").succeeded)
      let pinned = try home.run("evict", "\(place)/a.bin")
      #expect(pinned.ending == .exited(1))
      #expect(pinned.error.contains("'a.bin' is pinned"), "\(pinned.error)")
      #expect(try home.run("unpin", "\(place)/a.bin").succeeded)
      #expect(try home.run("evict", "\(place)/a.bin").succeeded)
      // Another directory is no mount, whatever else is mounted.
      let elsewhere = try home.run("prefetch", try home.sandbox.makeDirectory("x"), "a.bin")
      #expect(elsewhere.ending == .exited(1))
      #expect(elsewhere.error.contains("nothing is mounted at"), "\(elsewhere.error)")
      for words in [["mount", "http://h/a"], ["mount", "a", "http://h/b"]] {
        let usage = try EndToEndTests.run(
          [try Products.httpfs] + words, environment: home.environment, within: .seconds(20))
        #expect(usage.ending == .exited(64))
        #expect(usage.error.contains("mount point"), "\(usage.error)")
      }
    }

    @Test(arguments: [
      (["mount", "--cache", "x", "a", "b"], "'--cache-dir'"),
      (["mount", "--cach-dir", "x", "a", "b"], "'--cache-dir'"),
      (["get", "--limit-rate", "1M", "http://h/a"], "'--rate-limit'"),
      (["get", "--conections", "1", "http://h/a"], "'--connections'"),
      (["moutn", "a", "b"], "'mount'"), (["ls"], "'mounts' or 'list'"),
      (["ls", "remote"], "'mounts' or 'list'"), (["download", "http://h/a"], "'get'"),
    ])
    func `a near miss gets the right word, in one style of message`(
      words: [String], suggestion: String
    ) throws {
      let result = try Home().run(words, within: .seconds(20))
      #expect(result.ending == .exited(64))
      #expect(result.error.hasPrefix("httpfs: Unknown "), "\(result.error)")
      let first = result.error.split(separator: "\n").first
      #expect(first?.contains(suggestion) == true, "\(result.error)")
    }

    @Test(arguments: ["--version", "-V", "version"])
    func `the version is printed for each way to ask for it`(word: String) throws {
      let result = try Home().run(word)
      #expect(result.succeeded, "\(result.error)")
      #expect(result.output.wholeMatch(of: /\d+\.\d+\.\d+\n/) != nil, "\(result.output)")
    }

    @Test func `a mount over files says that it hides them, and a repaired mount does not`() throws
    {
      let origin = try OriginServer()
      let home = try Home()
      let place = try home.sandbox.makeDirectory("m")
      try home.sandbox.write("mine\n", to: "m/notes.txt")
      let words = ["mount", "--daemon", origin.url("a.bin", length: 1000, seed: 1), place]
      defer { _ = try? home.run("unmount", "--lazy", place) }
      let first = try home.run(words, within: .seconds(60))
      #expect(first.succeeded)
      #expect(
        first.error
          == "httpfs: warning: '\(place)' is not empty; its files are hidden until you unmount\n")
      #expect(access("\(place)/notes.txt", F_OK) != 0)

      let json = try JSONSerialization.jsonObject(
        with: Data(home.run("cache", "ls", "--json").output.utf8))
      let caches = try #require((json as? [String: Any])?["caches"] as? [[String: Any]])
      let process = try #require(caches.compactMap { $0["in_use_by"] as? Int }.first)
      kill(pid_t(process), SIGKILL)
      let isDead = Deadline(after: .seconds(20)).wait {
        access(place, F_OK) != 0 && errno == ENOTCONN
      }
      #expect(isDead)
      let second = try home.run(words, within: .seconds(60))
      #expect(second.succeeded, "\(second.error)")
      #expect(second.error.isEmpty, "\(second.error)")
      #expect(try digest(of: "\(place)/a.bin") == Digest.ofContent(seed: 1, byteCount: 1000))
      #expect(try home.run("unmount", place).succeeded)
      #expect(access("\(place)/notes.txt", F_OK) == 0)
    }

    @Test func `no part of a cache's name comes from a password or a query`() throws {
      let origin = try OriginServer()
      let home = try Home()
      let host = "user:pw-canary@127.0.0.1:\(origin.port)"
      for (index, url) in ["", "/", "/a.bin?pw-canary", "/pw/a.bin#x"].enumerated() {
        let place = try home.mount("m\(index)", "--no-check", "http://\(host)\(url)")
        #expect(try home.run("umount", place).succeeded)
      }
      let caches = home.sandbox.path(".cache/httpfs/mounts")
      let names = try FileManager.default.contentsOfDirectory(atPath: caches)
      #expect(names.count >= 3)
      #expect(!names.contains { $0.contains("canary") || $0.contains("user") }, "\(names)")
    }

    @Test
    func `each list from standard input has a cache of its own, and a bad one stops no command`()
      throws
    {
      let origin = try OriginServer()
      let home = try Home()
      let names = ["a.bin", "b.bin"]
      for name in names {
        let list = try home.sandbox.write(
          origin.url(name, length: 1000, seed: 1) + "\n", to: "\(name).list")
        let place = try home.sandbox.makeDirectory("m-\(name)")
        let result = try EndToEndTests.run(
          ["sh", "-c", "exec \"$0\" mount --daemon - \"$1\" < \"$2\"", try Products.httpfs, place]
            + [list], environment: home.environment, within: .seconds(60))
        #expect(result.succeeded, "\(result.error)")
        _ = try digest(of: "\(place)/\(name)")
      }
      // The mounts of the same source have one cache, and the message says where it is used.
      let place = home.sandbox.path("m-a.bin")
      let second = try home.run(
        "mount", "--cache-dir", home.sandbox.path("c"), origin.fileURL("x"), place)
      #expect(second.ending == .exited(1))
      let caches = home.sandbox.path(".cache/httpfs/mounts")
      try FileManager.default.createDirectory(
        atPath: "\(caches)/bad/v1", withIntermediateDirectories: true)
      let listed = try home.run("cache", "ls", "--json")
      let json = try JSONSerialization.jsonObject(with: Data(listed.output.utf8))
      let found = try #require((json as? [String: Any])?["caches"] as? [[String: Any]])
      #expect(found.count >= 2)
      for name in names {
        #expect(try home.run("umount", home.sandbox.path("m-\(name)")).succeeded)
      }
      #expect(try home.run("cache", "evict", "a.bin").output.contains("1 file"))
    }

    @Test func `a mount that hangs is shown as such, and one that answers late ends no command`()
      throws
    {
      let origin = try OriginServer()
      let home = try Home()
      let places = try (0..<2).map {
        try home.mount("m\($0)", origin.fileURL("\($0)"), "--no-check")
      }
      let json = try JSONSerialization.jsonObject(
        with: Data(home.run("cache", "ls", "--json").output.utf8))
      let caches = try #require((json as? [String: Any])?["caches"] as? [[String: Any]])
      let processes = caches.compactMap { $0["in_use_by"] as? Int }
      #expect(processes.count == 2)
      for process in processes { kill(pid_t(process), SIGSTOP) }
      defer { for process in processes { kill(pid_t(process), SIGCONT) } }
      let command = try home.sandbox.start(
        ["env", "HOME=\(home.sandbox.directory)", try Products.httpfs, "mounts"])
      // The first has been given up, the second is being asked.
      usleep(2_400_000)
      for process in processes { kill(pid_t(process), SIGCONT) }
      #expect(command.wait(within: .seconds(20)) == .exited(0))
      let lines = command.standardOutput.split(separator: "\n")
      #expect(lines.contains { $0.hasPrefix(places[0]) || $0.hasPrefix(places[1]) }, "\(lines)")
    }

    private func digest(of path: String) throws -> Substring {
      try output(of: ["sha256sum", path]).prefix(64)
    }
  }
}
