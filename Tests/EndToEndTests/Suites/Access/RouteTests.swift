import Foundation
import Glibc
import Testing

/// The routes of requests and their time limits: address families, interfaces, timeouts.
extension RealMounts {
  @Suite struct Routes {
    private typealias Pair = NetworkNamespacePair
    private static let byteCount: Int64 = 1 << 20
    private static let digest = Digest.ofContent(seed: 61, byteCount: byteCount)

    private func url(_ origin: NetworkNamespaceOrigin, _ host: String, _ name: String) -> String {
      origin.url(host, name, length: Self.byteCount, seed: 61)
    }

    @Test(.timeLimit(.minutes(2)))
    func `--ipv4 and --ipv6 choose among the addresses of a name`() throws {
      let work = try TransferWorkspace()
      let pair = try Pair(work.sandbox)
      let four = try NetworkNamespaceOrigin(in: pair.server, address: Pair.publicAddress)
      let six = try NetworkNamespaceOrigin(in: pair.server, address: Pair.publicAddress6)
      try pair.setHosts(
        "\(Pair.publicAddress) dual.test", "\(Pair.publicAddress6) dual.test",
        "\(Pair.publicAddress) four.test")
      for (option, origin) in [("--ipv4", four), ("--ipv6", six)] {
        let name = "get\(option).bin"
        let download = try pair.run(
          work, ["get", option, "-o", name, url(four, "dual.test", name)])
        #expect(download.succeeded, "\(option): \(download.error)")
        #expect(try work.sha256(name) == Self.digest)
        let file = "mount\(option).bin"
        let mount = try pair.mount(
          [url(four, "dual.test", file)], options: [option], cache: "cache\(option)")
        #expect(try mount.sha256(file) == Self.digest)
        #expect(try mount.unmount() == .exited(0))
        let paths = Set(try origin.requests().map(\.path))
        #expect(paths == ["/data/\(name)", "/data/\(file)"], "\(option)")
      }
      let none = try pair.run(
        work, ["get", "--ipv6", "--retries", "0", url(four, "four.test", "none.bin")])
      #expect(none.ending == .exited(6))
      // No server was asked.
      let asked = try four.requests().contains { $0.path.contains("none.bin") }
      #expect(!asked, "\(none.error)")
    }

    @Test(.timeLimit(.minutes(2)))
    func `--interface takes the way that it names, or none`() throws {
      let work = try TransferWorkspace()
      let pair = try Pair(work.sandbox)
      let origin = try NetworkNamespaceOrigin(in: pair.server)
      for (number, interface) in [pair.interface, "203.0.113.2"].enumerated() {
        let name = "good\(number).bin"
        let download = try pair.run(
          work,
          ["get", "--interface", interface, "-o", name, url(origin, Pair.publicAddress, name)])
        #expect(download.succeeded, "\(interface): \(download.error)")
        let mount = try pair.mount(
          [url(origin, Pair.publicAddress, name)], options: ["--interface", interface],
          cache: "cache\(number)")
        #expect(try mount.sha256(name) == Self.digest)
        #expect(try mount.unmount() == .exited(0))
      }
      let count = try origin.requests().count
      for interface in ["lo", "127.0.0.1"] {
        let download = try pair.run(
          work,
          [
            "get", "--interface", interface, "--retries", "0", "--connect-timeout", "2", "-o", "no",
            url(origin, Pair.publicAddress, "no.bin"),
          ])
        #expect(download.ending.isTransferFailure, "\(interface)")
      }
      #expect(try origin.requests().count == count)
    }

    @Test(.timeLimit(.minutes(2)))
    func `--connect-timeout bounds how long a mount waits for a connection`() throws {
      let work = try TransferWorkspace()
      let pair = try Pair(work.sandbox)
      let origin = try NetworkNamespaceOrigin(in: pair.server)
      let dead = url(origin, Pair.deadAddress, "dead.bin")
      for (seconds, isTold) in [(1, true), (20, false)] {
        let mount = try pair.mount(
          [dead], options: ["--connect-timeout", "\(seconds)", "--read-timeout", "30"],
          cache: "cache\(seconds)")
        let reader = try work.sandbox.start(mount.enter + ["cat", mount.path("dead.bin")])
        // .status is visible only from within the namespace.
        let told = try Deadline(after: .seconds(5)).wait(every: .milliseconds(200)) {
          try output(of: mount.enter + ["cat", mount.path(".status.json")])
            .contains("timed out while connecting")
        }
        #expect(told == isTold, "\(seconds) s")
        #expect(reader.isRunning)
        mount.process.signal(SIGTERM)
        #expect(mount.process.wait(within: .seconds(15)) == .exited(0))
      }
    }

    @Test(.timeLimit(.minutes(2)))
    func `--stall-timeout says after how long a silent request is given up`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let digest = Digest.ofContent(seed: 62, byteCount: 8 << 20)
      // The request stalls once; a retry succeeds. Without the option, the mount would wait for 15
      // s, get for 30 s.
      func url(_ name: String, from request: Int) -> String {
        origin.url(
          name, length: 8 << 20, seed: 62,
          query: "fault=stall&fault-at=4k&fault-count=1&fault-from=\(request)")
      }
      // With more connections, the rest would be requested again earlier.
      let download = try work.get(
        "--stall-timeout", "2", "--connections", "1", "-o", "got", url("get.bin", from: 1))
      #expect(download.succeeded, "\(download.error)")
      #expect(try work.sha256("got") == digest)
      #expect(download.duration >= .seconds(2), "\(download.duration)")
      #expect(download.duration < .seconds(15), "\(download.duration)")

      let mount = try work.sandbox.mount(
        urls: [url("m.bin", from: 2)],
        options: ["--stall-timeout", "1", "--read-timeout", "60", "--connections", "1"])
      var read = ""
      let duration = try elapsed { read = try mount.sha256("m.bin") }
      #expect(read == digest)
      print("stall timeouts of 2 s (get) and 1 s (mount): \(download.duration), \(duration)")
      #expect(duration < .seconds(10))
      #expect(try mount.unmount() == .exited(0))
      #expect(try origin.requests().count { $0.fault == "stall" } == 2)
    }

    @Test func `a cookie goes where its file says: by path, security and date`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      // libcurl trusts 127.0.0.1 as much as TLS, but not another name of it.
      let host = "other.localhost"
      func url(_ name: String) -> String {
        origin.url(name, length: 1000, seed: 3)
          .replacingOccurrences(of: "127.0.0.1", with: host)
      }
      let lines = [
        "\(host)\tFALSE\t/data/private\tFALSE\t0\tpath\tyes",
        "\(host)\tFALSE\t/\tTRUE\t0\tsecure\tno",
        "\(host)\tFALSE\t/\tFALSE\t1000000000\told\tno",
        "\(host)\tFALSE\t/\tFALSE\t4102444800\tyoung\tyes",
      ]
      try work.sandbox.write(lines.joined(separator: "\n") + "\n", to: "work/jar")
      let mount = try work.sandbox.mount(
        urls: [url("private/a.bin"), url("b.bin")],
        options: ["--cookies", work.path("jar"), "--ipv4"])
      for name in ["a.bin", "b.bin"] {
        #expect(try mount.sha256(name) == Digest.ofContent(seed: 3, byteCount: 1000))
      }
      #expect(try mount.unmount() == .exited(0))
      var sent: [String: Set<String>] = [:]
      for request in try origin.requests() {
        let names = (request.fields["cookie"] ?? "").split(separator: "; ").map(String.init)
        sent[request.path, default: []].formUnion(names)
      }
      #expect(sent["/data/private/a.bin"] == ["path=yes", "young=yes"])
      #expect(sent["/data/b.bin"] == ["young=yes"])
      #expect(try work.text("jar").hasPrefix(lines[0]))
    }

    @Test func `each host gets its own netrc entry, others the default`() throws {
      let work = try TransferWorkspace()
      let (named, other, third) = (try OriginServer(), try OriginServer(), try OriginServer())
      let netrc = try work.sandbox.write(
        """
        machine 127.0.0.1 login ann password one
        machine localhost
          login bob
          password two
        default login any password three

        """, to: "netrc")
      chmod(netrc, 0o600)
      func url(_ origin: OriginServer, _ host: String, _ auth: String) -> String {
        origin.url("\(auth.prefix(3)).bin", length: 1000, seed: 5, query: "auth=\(auth)")
          .replacingOccurrences(of: "127.0.0.1", with: host)
      }
      let urls = [
        url(named, "127.0.0.1", "ann:one"), url(other, "localhost", "bob:two"),
        // Another name of this machine, which no hosts file contains.
        url(third, "other.localhost", "any:three"),
      ]
      let mount = try work.sandbox.mount(urls: urls, options: ["--netrc-file", netrc, "--ipv4"])
      for (name, origin) in [("ann.bin", named), ("bob.bin", other), ("any.bin", third)] {
        #expect(try mount.sha256(name) == Digest.ofContent(seed: 5, byteCount: 1000), "\(name)")
        #expect(try Set(origin.requests().compactMap { $0.fields["authorization"] }).count == 1)
      }
      #expect(try mount.unmount() == .exited(0))
      let download = try work.run(["get", "--netrc-file", netrc, "--ipv4"] + urls)
      #expect(download.succeeded, "\(download.error)")
    }
  }
}
