import Foundation
import Glibc
import Testing

/// Proxies: squid and microsocks in front of the Origin and nginx.
extension RealMounts {
  @Suite struct Proxies {
    private static let credentials = ServerFeatures.Credentials(
      user: "pat", password: "pw-canary:/@")
    private static let userInfo = "pat:pw-canary%3A%2F%40@"
    private static let digest = Digest.ofContent(seed: 81, byteCount: 1 << 20)

    private func squid(
      _ sandbox: Sandbox, _ name: String = "squid", isGuarded: Bool = false
    ) throws -> SquidServer {
      try SquidServer(
        directory: try sandbox.makeDirectory(name),
        credentials: isGuarded ? Self.credentials : nil)
    }

    private func url(_ origin: OriginServer, _ name: String = "a.bin", query: String = "") -> String
    {
      origin.url(name, length: 1 << 20, seed: 81, query: query)
    }

    @Test func `mount, get and put go through squid, which asks for a password`() throws {
      let work = try TransferWorkspace()
      let squid = try squid(work.sandbox, isGuarded: true)
      let origin = try OriginServer()
      let refused = try work.get("--proxy", squid.url(), "--retries", "0", "-o", "no", url(origin))
      #expect(refused.error.contains("HTTP 407"), "\(refused.error)")
      #expect(try origin.requests().isEmpty)

      let proxy = squid.url(userInfo: Self.userInfo)
      let download = try work.get("--proxy=\(proxy)", "-o", "got", url(origin))
      #expect(download.succeeded, "\(download.error)")
      #expect(try work.sha256("got") == Self.digest)
      let upload = try work.put("--proxy", proxy, "got", url(origin, "up"))
      #expect(upload.succeeded, "\(upload.error)")

      let log = work.sandbox.path("log")
      let mount = try work.sandbox.mount(
        urls: [url(origin, "m.bin")],
        options: ["--proxy", proxy, "--log-level", "trace", "--log-file", log])
      #expect(try mount.sha256("m.bin") == Self.digest)
      let processes =
        ProcessTable.watchdogs(of: mount.mountpoint) + [mount.process.processID]
      for process in processes {
        let line = ProcessTable.commandLine(of: process).joined(separator: " ")
        #expect(!line.contains("canary"), "\(line)")
      }
      let status = try output(of: ["cat", mount.path(".status"), mount.path(".status.json")])
      #expect(!status.contains("canary"))
      #expect(try mount.unmount() == .exited(0))
      let traces = try run([
        "grep", "-r", "-l", "canary", log, mount.cacheDirectory, work.directory,
      ])
      #expect(traces.ending == .exited(1), "\(traces.output)")

      let seen = try squid.requests()
      for name in ["GET http://127.0.0.1:\(origin.port)/data/a.bin", "PUT ", "/data/m.bin"] {
        #expect(seen.contains { $0.contains(name) && !$0.hasSuffix("407") }, "\(name): \(seen)")
      }
      // The origin does not get the proxy's password.
      for request in try origin.requests() {
        #expect(request.fields["proxy-authorization"] == nil)
        #expect(request.fields["via"]?.contains("squid") == true)
      }
    }

    @Test func `https goes through a tunnel, and header fields are not shown to the proxy`() throws
    {
      let work = try TransferWorkspace()
      let squid = try squid(work.sandbox)
      let authority = try work.sandbox.certificateAuthority()
      let root = try work.sandbox.makeDirectory("root")
      try TestContent.write(to: "\(root)/a.bin", seed: 81, byteCount: 1 << 20)
      let nginx = try work.sandbox.nginx(
        root: root, features: ServerFeatures(certificate: try authority.certificate()))
      let mount = try work.sandbox.mount(
        urls: [try nginx.secureURL("a.bin")],
        options: ["--proxy", squid.url(), "--cacert", authority.certificatePath])
      #expect(try mount.sha256("a.bin") == Self.digest)
      #expect(try mount.unmount() == .exited(0))
      let port = try #require(nginx.tlsPort)
      #expect(
        Deadline(after: .seconds(10)).wait {
          (try? squid.requests())?.contains("CONNECT localhost:\(port) 200") == true
        })
    }

    @Test func `socks5h and socks5 proxies carry a mount, with a password`() throws {
      let sandbox = try Sandbox()
      let socks = try SOCKSServer(credentials: Self.credentials)
      let origin = try OriginServer()
      for scheme in ["socks5", "socks5h"] {
        let mount = try sandbox.mount(
          urls: [url(origin).replacingOccurrences(of: "127.0.0.1", with: "localhost")],
          options: ["--proxy", "\(scheme)://\(Self.userInfo)127.0.0.1:\(socks.port)", "--ipv4"],
          cache: scheme)
        #expect(try mount.sha256("a.bin") == Self.digest)
        #expect(try mount.unmount() == .exited(0))
        // The log shows whether the proxy or httpfs has resolved the name.
        let name = scheme == "socks5h" ? "localhost" : "127.0.0.1"
        #expect(socks.log.contains("connected to \(name):\(origin.port)"), "\(socks.log)")
      }
    }

    @Test(.timeLimit(.minutes(2)))
    func `a proxy that takes connections and says nothing is passed over`() throws {
      let work = try TransferWorkspace()
      let hung = try squid(work.sandbox, "hung")
      let origin = try OriginServer()
      let authority = try work.sandbox.certificateAuthority()
      let root = try work.sandbox.makeDirectory("root")
      try TestContent.write(to: "\(root)/a.bin", seed: 81, byteCount: 1 << 20)
      let nginx = try work.sandbox.nginx(
        root: root, features: ServerFeatures(certificate: try authority.certificate()))
      hung.signal(SIGSTOP)
      defer { hung.signal(SIGCONT) }
      let options = [
        "--connect-timeout", "2", "--stall-timeout", "2", "--cacert", authority.certificatePath,
      ]
      for (name, url) in [("plain", url(origin)), ("tunnel", try nginx.secureURL("a.bin"))] {
        let list = options + ["--proxy", "\(hung.url());DIRECT"]
        let mount = try work.sandbox.mount(urls: [url], options: list, cache: name)
        var read = ""
        let duration = try elapsed { read = try mount.sha256("a.bin") }
        #expect(read == Self.digest, "\(name)")
        #expect(try mount.unmount() == .exited(0))
        let download = try work.run(["get", "-o", name, url] + list)
        #expect(download.succeeded, "\(name): \(download.error)")
        #expect(try work.sha256(name) == Self.digest)
        print("past a hanging proxy, \(name): mount \(duration), get \(download.duration)")
        #expect(duration < .seconds(15))
        #expect(download.duration < .seconds(20))

        // Without another route, the deadline holds.
        let alone = try work.sandbox.mount(
          urls: [url], options: options + ["--proxy", hung.url(), "--read-timeout", "3"],
          cache: "\(name)-alone")
        let result = try run(["cat", alone.path("a.bin")], within: .seconds(20))
        #expect(!result.succeeded)
        #expect(result.duration < .seconds(8), "\(name): \(result.duration)")
        #expect(try alone.unmount() == .exited(0))
      }
    }

    @Test func `an https proxy is verified, also where servers are not`() throws {
      let work = try TransferWorkspace()
      let squid = try squid(work.sandbox, isGuarded: true)
      let (authority, stranger) = (
        try work.sandbox.certificateAuthority(), try work.sandbox.certificateAuthority()
      )
      let front = try TLSFront(
        directory: try work.sandbox.makeDirectory("front"),
        certificate: try authority.certificate(),
        port: squid.port)
      let origin = try OriginServer()
      let root = try work.sandbox.makeDirectory("root")
      try TestContent.write(to: "\(root)/a.bin", seed: 81, byteCount: 1 << 20)
      let nginx = try work.sandbox.nginx(
        root: root, features: ServerFeatures(certificate: try authority.certificate()))
      let proxy = "https://\(Self.userInfo)localhost:\(front.port)"
      for (name, url) in [("plain", url(origin)), ("tunnel", try nginx.secureURL("a.bin"))] {
        let options = ["--proxy", proxy, "--cacert", authority.certificatePath]
        let mount = try work.sandbox.mount(urls: [url], options: options, cache: name)
        #expect(try mount.sha256("a.bin") == Self.digest, "\(name)")
        #expect(try mount.unmount() == .exited(0))
        let download = try work.run(["get", "-o", name, url] + options)
        #expect(download.succeeded, "\(name): \(download.error)")
        #expect(try work.sha256(name) == Self.digest)
        for refusing in [["--cacert", stranger.certificatePath], ["--insecure"]] {
          let refused = try work.run(
            ["get", "--retries", "0", "-o", "no", url, "--proxy", proxy] + refusing)
          #expect(refused.ending == .exited(60), "\(name) \(refusing)")
          #expect(!refused.error.contains("canary"))
        }
      }
      let seen = try squid.requests()
      #expect(seen.contains { $0.hasPrefix("GET http://127.0.0.1:\(origin.port)/data/a.bin") })
      #expect(seen.contains { $0.hasPrefix("CONNECT localhost:") })
    }

    @Test func `a socks4 proxy carries a mount and a download`() throws {
      let work = try TransferWorkspace()
      let socks = try DanteServer(directory: try work.sandbox.makeDirectory("dante"))
      let origin = try OriginServer()
      let options = ["--proxy", "socks4://127.0.0.1:\(socks.port)"]
      let mount = try work.sandbox.mount(urls: [url(origin)], options: options)
      #expect(try mount.sha256("a.bin") == Self.digest)
      #expect(try mount.unmount() == .exited(0))
      let download = try work.run(["get", "-o", "got", url(origin)] + options)
      #expect(download.succeeded, "\(download.error)")
      #expect(try work.sha256("got") == Self.digest)
      // Requests reached the origin only through the proxy.
      #expect(socks.connectionCount >= 2, "\(socks.log)")
      socks.stop()
      let gone = try work.run(["get", "--retries", "0", "-o", "no", url(origin)] + options)
      #expect(gone.ending == .exited(6))
    }

    @Test func `the environment's proxy is used, unless no_proxy or --no-proxy names the host`()
      throws
    {
      let work = try TransferWorkspace()
      let squid = try squid(work.sandbox)
      let origin = try OriginServer()
      for (environment, options, isProxied) in [
        (["http_proxy=\(squid.url())"], [], true),
        (["all_proxy=\(squid.url())"], [], true),
        (["HTTP_PROXY=\(squid.url())"], [], false),
        (["http_proxy=\(squid.url())", "no_proxy=example.org,127.0.0.0/8"], [], false),
        (["http_proxy=\(squid.url())"], ["--no-proxy", "127.0.0.1"], false),
        (["http_proxy=\(squid.url())", "no_proxy=*"], ["--no-proxy", "example.org"], true),
        (["http_proxy=http://127.0.0.1:1"], ["--proxy", "DIRECT"], false),
        (["http_proxy=http://127.0.0.1:1"], ["--proxy", squid.url()], true),
        ([], ["--proxy", squid.url(), "--no-proxy", "127.0.0.1"], false),
        (["no_proxy=127.0.0.1"], ["--proxy", squid.url()], false),
      ] as [([String], [String], Bool)] {
        try origin.clearLog()
        let result = try run(
          ["env"] + environment
            + work.commandLine(["get", "--retries", "0", "-o", "a", url(origin)] + options))
        #expect(result.succeeded, "\(environment) \(options): \(result.error)")
        let requests = try origin.requests()
        #expect(!requests.isEmpty)
        #expect(
          requests.allSatisfy { ($0.fields["via"] != nil) == isProxied },
          "\(environment) \(options)")
        unlink(work.path("a"))
      }
    }

    @Test func `a list of proxies spreads the load and turns to the next where they fail`() throws {
      let work = try TransferWorkspace()
      let sandbox = work.sandbox
      let (first, second) = (try squid(sandbox, "one"), try squid(sandbox, "two"))
      let origin = try OriginServer()
      let dead = "http://127.0.0.1:\(try FreePort.next())"
      let names = (0..<6).map { "f\($0).bin" }
      let mount = try sandbox.mount(
        urls: names.map { url(origin, $0) },
        options: ["--proxy", "\(first.url())|\(dead)|\(second.url());DIRECT"])
      for name in names { #expect(try mount.sha256(name) == Self.digest) }
      #expect(try !first.requests().isEmpty)
      #expect(try !second.requests().isEmpty)
      #expect(try origin.requests().allSatisfy { $0.fields["via"] != nil })
      #expect(try mount.unmount() == .exited(0))

      // Both proxies are gone: later transfers are direct, including uploads.
      first.stop()
      second.stop()
      try origin.clearLog()
      let list = "\(first.url())|\(second.url());\(dead);DIRECT"
      let download = try work.get("--proxy", list, "--retries", "0", "-o", "a", url(origin))
      #expect(download.succeeded, "\(download.error)")
      #expect(try work.sha256("a") == Self.digest)
      let upload = try work.put("--proxy", list, "--retries", "0", "a", url(origin, "up"))
      #expect(upload.succeeded, "\(upload.error)")
      #expect(try origin.requests().allSatisfy { $0.fields["via"] == nil })

      // Without DIRECT, no request bypasses the proxies.
      try origin.clearLog()
      let refused = try work.get(
        "--proxy", "\(first.url());\(dead)", "--retries", "0", "-o", "b", url(origin))
      #expect(refused.ending == .exited(6))
      #expect(refused.error.contains("connection refused"), "\(refused.error)")
      #expect(try origin.requests().isEmpty)
    }
  }
}
