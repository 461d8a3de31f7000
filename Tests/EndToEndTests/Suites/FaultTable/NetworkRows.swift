import Foundation
import Glibc
import SeededRandom
import Testing

/// The rows of the fault table that need their own network: addresses, routes, links, names.
///
/// There are two namespaces with a cable between them; see `NetworkNamespacePair`. Every
/// expectation of the mount also holds for `get`, and for `put` if bytes go in the other direction.
extension RealMounts {
  @Suite struct NetworkRows {
    private typealias Pair = NetworkNamespacePair

    /// A network, a server on it, and a place to download to.
    private struct Scene {
      let work: TransferWorkspace
      let pair: NetworkNamespacePair
      let origin: NetworkNamespaceOrigin
      var random: SeededGenerator
      let contentSeed: UInt64

      init(row: UInt64, seed: UInt64) throws {
        work = try TransferWorkspace()
        pair = try NetworkNamespacePair(work.sandbox)
        origin = try NetworkNamespaceOrigin(in: pair.server)
        random = SeededGenerator(seed: seed &* 1000 &+ row)
        contentSeed = UInt64.random(in: 1...UInt64(UInt32.max), using: &random)
      }
    }

    // MARK: 32

    @Test(
      "32 a redirect from a public address to a private one is refused before it connects",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func publicToPrivate(seed: UInt64) throws {
      let scene = try Scene(row: 32, seed: seed)
      let (origin, pair) = (scene.origin, scene.pair)
      // A name, for which an attacker's DNS server could return this address.
      try pair.setHosts(
        "\(Pair.publicAddress) public.test", "\(Pair.privateAddress) rebound.test")
      let length: Int64 = 100_000
      let targets = [Pair.privateAddress, "rebound.test", "127.0.0.1", "10.9.9.2"]
      let urls = targets.enumerated().map { index, host in
        origin.url(
          "public.test", "r\(index).bin", length: 1, seed: 1,
          query: "redirect="
            + Self.encoded(
              origin.url(host, "secret\(index).bin", length: length, seed: scene.contentSeed)))
      }
      let mount = try pair.mount(urls, options: ["--read-timeout", "10"])
      for index in targets.indices {
        let start = ContinuousClock.now
        let result = try run(mount.enter + ["cat", mount.path("r\(index).bin")])
        #expect(result.error.contains("Input/output error"), "\(targets[index]): \(result.error)")
        // No attempt is repeated, because a retry would not help.
        #expect(.now - start < .seconds(4), "\(targets[index])")
        let error = try #require(try mount.status(of: "r\(index).bin").lastError)
        #expect(error.contains("redirect refused"), "\(error)")
        #expect(error.contains("private address"), "\(error)")

        let get = try pair.run(scene.work, ["get", urls[index]])
        #expect(get.ending == .exited(23))
        #expect(get.error.contains("private address"), "\(get.error)")
      }
      let put = try pair.run(
        scene.work,
        ["put", try scene.work.sandbox.write("secret", to: "up"), Self.keepingMethod(urls[0])])
      #expect(put.ending == .exited(23))
      #expect(put.error.contains("private address"), "\(put.error)")
      #expect(scene.work.names.isEmpty)
      let requests = try origin.requests()
      #expect(requests.allSatisfy { !$0.path.contains("secret") })
      #expect(!requests.isEmpty)
    }

    @Test(
      "32 the user's own private addresses, and redirects that do not lead inside, are followed",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func permittedRedirects(seed: UInt64) throws {
      let scene = try Scene(row: 132, seed: seed)
      let origin = scene.origin
      let length: Int64 = 3 << 20
      func target(_ host: String, _ name: String) -> String {
        "redirect="
          + Self.encoded(origin.url(host, name, length: length, seed: scene.contentSeed))
      }
      let urls = [
        origin.url(Pair.privateAddress, "direct.bin", length: length, seed: scene.contentSeed),
        origin.url(
          Pair.privateAddress, "inside.bin", length: 1, seed: 1,
          query: target(Pair.privateAddress, "t.bin")),
        origin.url(
          Pair.privateAddress, "outward.bin", length: 1, seed: 1,
          query: target(Pair.publicAddress, "t.bin")),
        origin.url(
          Pair.publicAddress, "outside.bin", length: 1, seed: 1,
          query: target(Pair.otherPublicAddress, "t.bin")),
      ]
      let mount = try scene.pair.mount(urls)
      let digest = Digest.ofContent(seed: scene.contentSeed, byteCount: length)
      for name in ["direct", "inside", "outward", "outside"] {
        #expect(try mount.sha256(name + ".bin") == digest, "\(name)")
      }
      let get = try scene.pair.run(scene.work, ["get"] + urls)
      #expect(get.ending == .exited(0), "\(get.error)")
      for name in scene.work.names { #expect(try scene.work.sha256(name) == digest, "\(name)") }
      #expect(scene.work.names.count == 4)
    }

    // MARK: 37

    @Test(
      "37 an address that swallows everything ends in ETIMEDOUT by the deadline",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func blackHole(seed: UInt64) throws {
      var scene = try Scene(row: 37, seed: seed)
      let timeout = Int.random(in: 2...5, using: &scene.random)
      let url = scene.origin.url(Pair.deadAddress, "dead.bin", length: 1000, seed: 1)
      let live = scene.origin.url(
        Pair.publicAddress, "live.bin", length: 1000, seed: scene.contentSeed)
      let mount = try scene.pair.mount([url, live], options: ["--read-timeout", "\(timeout)"])
      let start = ContinuousClock.now
      let result = try run(mount.enter + ["cat", mount.path("dead.bin")], within: .seconds(20))
      let duration = ContinuousClock.now - start
      #expect(result.error.contains("Connection timed out"), "\(result.error)")
      #expect(duration < .seconds(timeout + 5), "\(duration)")
      #expect(
        try mount.sha256("live.bin")
          == Digest.ofContent(seed: scene.contentSeed, byteCount: 1000))

      for verb in [["get"], ["put", try scene.work.sandbox.write("x", to: "up")]] {
        let command = try scene.pair.run(
          scene.work, verb + ["--connect-timeout", "1", "--retries", "1", url])
        #expect(command.ending == .exited(2))
        #expect(command.error.contains("timed out"), "\(command.error)")
        #expect(command.duration < .seconds(8), "\(command.duration)")
      }
    }

    // MARK: 41

    /// The end of the cable that goes down, and the duration.
    private func outage(_ scene: inout Scene) -> (isClient: Bool, Duration) {
      (
        Bool.random(using: &scene.random),
        .milliseconds(Int.random(in: 3000...14_000, using: &scene.random))
      )
    }

    @Test(
      "41 the link goes down and comes up: reading goes on within 5 s", .timeLimit(.minutes(3)),
      arguments: FaultSeeds.all)
    func linkDown(seed: UInt64) throws {
      var scene = try Scene(row: 41, seed: seed)
      let (isClient, duration) = outage(&scene)
      let length: Int64 = 24 << 20
      let url = scene.origin.url(
        Pair.publicAddress, "long.bin", length: length, seed: scene.contentSeed,
        query: "total-rate=2m")
      let mount = try scene.pair.mount([url])
      let reader = try scene.work.sandbox.start(
        mount.enter + ["sha256sum", mount.path("long.bin")])
      #expect(try mount.waitForStatus(of: "long.bin") { $0.cachedByteCount > 4 << 20 })
      let pause = try resumption(scene.pair, isClient: isClient, after: duration)
      print("row 41, mount, seed \(seed): down \(duration), reading goes on after \(pause)")
      #expect(pause <= .seconds(5))
      #expect(reader.wait(within: .seconds(60)) == .exited(0), "\(reader.standardError)")
      #expect(
        reader.standardOutput.prefix(64)
          == Digest.ofContent(seed: scene.contentSeed, byteCount: length))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "41 the link goes down and comes up: a download goes on within 5 s", .timeLimit(.minutes(3)),
      arguments: FaultSeeds.all)
    func linkDownUnderDownload(seed: UInt64) throws {
      var scene = try Scene(row: 141, seed: seed)
      let (isClient, duration) = outage(&scene)
      let length: Int64 = 24 << 20
      let url = scene.origin.url(
        Pair.publicAddress, "long.bin", length: length, seed: scene.contentSeed,
        query: "total-rate=2m")
      let process = try scene.work.sandbox.start(
        scene.pair.launcher + (try scene.work.commandLine(["get", url])))
      let part = scene.work.path("long.bin.httpfs-part")
      let begun = Deadline(after: .seconds(20)).wait {
        (FileStatus.allocatedByteCount(of: part) ?? 0) > 4 << 20
      }
      #expect(begun)
      let pause = try resumption(scene.pair, isClient: isClient, after: duration)
      print("row 41, get, seed \(seed): down \(duration), going on after \(pause)")
      #expect(pause <= .seconds(5))
      #expect(process.wait(within: .seconds(60)) == .exited(0), "\(process.standardError)")
      #expect(
        try scene.work.sha256("long.bin")
          == Digest.ofContent(seed: scene.contentSeed, byteCount: length))
    }

    /// Takes the link down for `outage`, and measures the time from its return until bytes arrive
    /// again.
    private func resumption(
      _ pair: NetworkNamespacePair, isClient: Bool, after outage: Duration
    ) throws -> Duration {
      let namespace = isClient ? pair.client : pair.server
      try pair.setLink(of: namespace, up: false)
      pause(for: outage)
      let before = try pair.receivedByteCount
      try pair.setLink(of: namespace, up: true)
      let start = ContinuousClock.now
      // More than the traffic of neighbour discovery and connecting.
      _ = try Deadline(after: .seconds(30)).wait(every: .milliseconds(20)) {
        try pair.receivedByteCount > before + 100_000
      }
      return .now - start
    }

    // MARK: 42

    @Test(
      "42 a name without an address: cached bytes are read, others give EIO within 5 s",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func unknownName(seed: UInt64) throws {
      var scene = try Scene(row: 42, seed: seed)
      // Long enough that the read-ahead does not reach its end.
      let length: Int64 = 128 << 20
      try scene.pair.setHosts("\(Pair.publicAddress) server.test")
      let urls = ["whole.bin", "part.bin", "never.bin"].map {
        scene.origin.url("server.test", $0, length: length, seed: scene.contentSeed)
      }
      let digest = Digest.ofContent(seed: scene.contentSeed, byteCount: length)
      let megabytes = Int.random(in: 1...3, using: &scene.random)
      let head = ["dd", "bs=1M", "count=\(megabytes)", "status=none"]
      do {
        let mount = try scene.pair.mount(urls)
        #expect(try mount.sha256("whole.bin") == digest)
        try output(of: mount.enter + head + ["of=/dev/null", "if=\(mount.path("part.bin"))"])
        #expect(try mount.unmount() == .exited(0))
      }
      try scene.pair.setHosts()
      let mount = try scene.pair.mount(urls, options: ["--read-timeout", "20"])
      #expect(try mount.sha256("whole.bin") == digest)
      let copy = scene.work.path("copy")
      try output(of: mount.enter + head + ["of=\(copy)", "if=\(mount.path("part.bin"))"])
      #expect(
        try scene.work.sha256("copy")
          == Digest.ofContent(seed: scene.contentSeed, byteCount: Int64(megabytes) << 20))
      for (name, options) in [("part.bin", ["skip=126", "bs=1M"]), ("never.bin", ["bs=1M"])] {
        let result = try run(
          mount.enter + ["dd", "of=/dev/null", "if=\(mount.path(name))", "count=1"] + options,
          within: .seconds(20))
        #expect(result.error.contains("Input/output error"), "\(name): \(result.error)")
        let isInTime = try MachinePace.keeps(result.duration, within: .seconds(5))
        #expect(isInTime, "\(name): \(result.duration)")
        let error = try #require(try mount.status(of: name).lastError)
        #expect(error.contains("does not resolve"), "\(error)")
      }
      let get = try scene.pair.run(scene.work, ["get", urls[2]])
      #expect(get.ending == .exited(19))
      #expect(get.error.contains("does not resolve"), "\(get.error)")
      let isInTime = try MachinePace.keeps(get.duration, within: .seconds(5))
      #expect(isInTime, "\(get.duration)")
    }

    // MARK: 43

    @Test(
      "43 where IPv6 is broken, IPv4 is used within a second", .timeLimit(.minutes(2)),
      arguments: FaultSeeds.all)
    func brokenIPv6(seed: UInt64) throws {
      let scene = try Scene(row: 43, seed: seed)
      let length: Int64 = 10_000
      for (name, address6) in [("swallowed", Pair.deadAddress6), ("refused", Pair.publicAddress6)] {
        // No server listens at this IPv6 address.
        try scene.pair.setHosts(
          "\(Pair.publicAddress) four.test", "\(address6) six.test", "\(address6) dual.test",
          "\(Pair.publicAddress) dual.test")
        let urls = ["four.test", "dual.test"].map {
          scene.origin.url(
            $0, "\($0)-\(name).bin", length: length, seed: scene.contentSeed)
        }
        let mount = try scene.pair.mount(urls, cache: "cache-\(name)")
        let digest = Digest.ofContent(seed: scene.contentSeed, byteCount: length)
        // IPv6 must come first here, or the test would show nothing.
        let addresses = try output(of: scene.pair.launcher + ["getent", "ahosts", "dual.test"])
        #expect(addresses.hasPrefix(address6), "\(addresses)")
        var durations: [Duration] = []
        for host in ["four.test", "dual.test"] {
          let start = ContinuousClock.now
          #expect(try mount.sha256("\(host)-\(name).bin") == digest)
          durations.append(.now - start)
        }
        print("row 43, mount, \(name): IPv4 alone \(durations[0]), both \(durations[1])")
        #expect(durations[1] < durations[0] + .seconds(1))
        let get = try scene.pair.run(scene.work, ["get", urls[1]])
        #expect(get.ending == .exited(0), "\(get.error)")
        #expect(get.duration < .milliseconds(1500), "\(get.duration)")
        #expect(try scene.work.sha256("dual.test-\(name).bin") == digest)
        #expect(try mount.unmount() == .exited(0))
      }
    }

    // MARK: Text

    /// `text` as the value of a query.
    private static func encoded(_ text: String) -> String {
      text.replacing("%", with: "%25").replacing("&", with: "%26").replacing("?", with: "%3F")
        .replacing("=", with: "%3D").replacing("#", with: "%23")
    }

    /// The URL of a redirect that preserves the method of an upload.
    private static func keepingMethod(_ url: String) -> String { url + "&redirect-status=307" }
  }
}
