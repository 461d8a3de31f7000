import Foundation
import Glibc
import Testing

/// The basis of the tests of downloads and uploads: real servers, certificates, a full disk.
extension RealMounts {
  @Suite struct TransferHarness {
    private static let credentials = ServerFeatures.Credentials(user: "ann", password: "s3cret: x")
    private static let authorization = "\(credentials.user):\(credentials.password)"

    /// Runs curl without a proxy.
    ///
    /// - Returns: 0 and an HTTP status, or curl's exit status and 0.
    private func curl(_ arguments: String...) throws -> (exit: CInt, status: Int, version: String) {
      let result = try run(
        ["curl", "-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code} %{http_version}"]
          + arguments, within: .seconds(20))
      let words = result.output.split(separator: " ")
      guard case .exited(let exit) = result.ending, words.count == 2, let status = Int(words[0])
      else { throw HarnessError("\(result.commandLine): \(result.output) \(result.error)") }
      return (exit, status, String(words[1]))
    }

    /// Creates a root with `a.bin` (100,000 bytes) and `a.txt` (100,000 bytes, compressible).
    private func root(_ sandbox: Sandbox) throws -> String {
      let root = try sandbox.makeDirectory("www")
      try sandbox.write([UInt8](repeating: 7, count: 100_000), to: "www/a.bin")
      try sandbox.write(String(repeating: "0123456789", count: 10_000), to: "www/a.txt")
      return root
    }

    @Test func `Apache serves a range and logs it`() throws {
      let sandbox = try Sandbox()
      let apache = try sandbox.apache(root: try root(sandbox))
      #expect(try curl("-r", "10-19", apache.url("a.bin")).status == 206)
      #expect(try curl(apache.url("a.bin")).status == 200)
      let requests = try apache.takeRequests()
      #expect(requests.map(\.path) == ["/a.bin", "/a.bin"])
      #expect(requests.map(\.range) == ["bytes=10-19", nil])
      #expect(requests.map(\.bodyByteCount) == [10, 100_000])
      #expect(requests.map(\.protocolVersion) == ["HTTP/1.1", "HTTP/1.1"])
      #expect(requests[0].connection != requests[1].connection)
      #expect(try apache.takeRequests().isEmpty)
    }

    @Test func `Apache serves 32 connections at once and leaves no process behind`() throws {
      let sandbox = try Sandbox()
      let root = try root(sandbox)
      // The responses are slow enough to overlap.
      let apache = try sandbox.apache(
        root: root,
        configuration: """
          LoadModule ratelimit_module /usr/lib/apache2/modules/mod_ratelimit.so
          LoadModule env_module /usr/lib/apache2/modules/mod_env.so
          SetOutputFilter RATE_LIMIT
          SetEnv rate-limit 100
          """)
      let config = try sandbox.write(
        String(repeating: "url = \"\(apache.url("a.bin"))\"\noutput = /dev/null\n", count: 32),
        to: "curl.conf")
      try output(of: [
        "curl", "-sS", "--noproxy", "*", "--fail", "--parallel", "--parallel-immediate",
        "--parallel-max", "32", "--config", config,
      ])
      let requests = try apache.takeRequests()
      #expect(requests.map(\.status) == Array(repeating: 200, count: 32))
      #expect(requests.peakConcurrency == 32)
      apache.stop()
      #expect(!FreePort.isListening(apache.port))
      // The arguments of its processes contain the configuration's path, which is in the sandbox.
      #expect(try run(["pgrep", "-f", sandbox.directory + "/apache"]).ending == .exited(1))
    }

    @Test func `Apache refuses an upload without the password and takes one with it`() throws {
      let sandbox = try Sandbox()
      let features = ServerFeatures(acceptsUploads: true, credentials: Self.credentials)
      let apache = try sandbox.apache(root: try root(sandbox), features: features)
      try expectUploads(
        sandbox, url: apache.url, writable: apache.writable, log: apache.takeRequests)
      // mod_dav does not create directories.
      #expect(try curl("-T", sandbox.path("up.bin"), apache.url("upload/new/a")).status == 409)
    }

    @Test func `nginx refuses an upload without the password and takes one with it`() throws {
      let sandbox = try Sandbox()
      let features = ServerFeatures(acceptsUploads: true, credentials: Self.credentials)
      let nginx = try sandbox.nginx(root: try root(sandbox), features: features)
      try expectUploads(sandbox, url: nginx.url, writable: nginx.writable, log: nginx.takeRequests)
      // nginx creates directories.
      #expect(try curl("-T", sandbox.path("up.bin"), nginx.url("upload/new/a")).status == 201)
    }

    private func expectUploads(
      _ sandbox: Sandbox, url: (String) -> String, writable: WritableArea,
      log: () throws -> [LoggedRequest]
    ) throws {
      let bytes = [UInt8](repeating: 9, count: 5 << 20)
      let file = try sandbox.write(bytes, to: "up.bin")
      func stored(_ path: String) -> Data? {
        FileManager.default.contents(atPath: writable.path(of: path))
      }
      #expect(try curl("-T", file, url("upload/a")).status == 201)
      #expect(stored("upload/a") == Data(bytes))
      #expect(try curl("-T", file, url("private/a")).status == 401)
      #expect(try curl("-T", file, "-u", "ann:wrong", url("private/a")).status == 401)
      #expect(stored("private/a") == nil)
      #expect(try curl("-T", file, "-u", Self.authorization, url("private/a")).status == 201)
      #expect(stored("private/a") == Data(bytes))
      #expect(try curl(url("private/a")).status == 401)
      #expect(try curl("-u", Self.authorization, url("private/a")).status == 200)
      #expect(try curl("-T", file, url("a.bin")).status == 405)
      #expect(try log().map(\.method) == ["PUT", "PUT", "PUT", "PUT", "GET", "GET", "PUT"])
    }

    @Test func `both servers are trusted with the authority's certificate only`() throws {
      let sandbox = try Sandbox()
      let root = try root(sandbox)
      let authority = try sandbox.certificateAuthority()
      let features = ServerFeatures(certificate: try authority.certificate())
      let nginx = try sandbox.nginx(root: root, features: features)
      let apache = try sandbox.apache(root: root, features: features)
      for host in ["localhost", "127.0.0.1"] {
        for url in [
          try nginx.secureURL("a.bin", host: host), try apache.secureURL("a.bin", host: host),
        ] {
          let trusted = try curl("--cacert", authority.certificatePath, url)
          #expect(trusted == (0, 200, "1.1"))
          // 60: the peer's certificate cannot be authenticated.
          #expect(try curl(url).exit == 60)
        }
      }
    }

    @Test(arguments: ["expired", "other host", "self-signed"])
    func `a bad certificate is refused although its authority is trusted`(_ flaw: String) throws {
      let sandbox = try Sandbox()
      let authority = try sandbox.certificateAuthority()
      let certificate =
        switch flaw {
        case "expired": try authority.expiredCertificate()
        case "other host": try authority.otherHostCertificate()
        default: try authority.selfSignedCertificate()
        }
      let nginx = try sandbox.nginx(
        root: try root(sandbox), features: ServerFeatures(certificate: certificate))
      let url = try nginx.secureURL("a.bin")
      #expect(try curl("--cacert", authority.certificatePath, url).exit == 60)
      #expect(try curl("--insecure", url).status == 200)
      // The other host's name is the only flaw of its certificate.
      if flaw == "other host", let port = nginx.tlsPort {
        let name = CertificateAuthority.otherHost
        let reached = try curl(
          "--cacert", authority.certificatePath, "--resolve", "\(name):\(port):127.0.0.1",
          "https://\(name):\(port)/a.bin")
        #expect(reached.status == 200)
      }
    }

    @Test func `HTTP/2 is negotiated where it is offered`() throws {
      let sandbox = try Sandbox()
      let root = try root(sandbox)
      let authority = try sandbox.certificateAuthority()
      let features = ServerFeatures(certificate: try authority.certificate(), http2: true)
      let nginx = try sandbox.nginx(root: root, features: features)
      let apache = try sandbox.apache(root: root, features: features)
      let trust = ["--cacert", authority.certificatePath]
      for url in [try nginx.secureURL("a.bin"), try apache.secureURL("a.bin")] {
        #expect(try curl(trust[0], trust[1], url) == (0, 200, "2"))
        #expect(try curl(trust[0], trust[1], "--http1.1", url) == (0, 200, "1.1"))
      }
      #expect(try nginx.takeRequests().map(\.protocolVersion) == ["HTTP/2.0", "HTTP/1.1"])
      #expect(try apache.takeRequests().map(\.protocolVersion) == ["HTTP/2.0", "HTTP/1.1"])
    }

    @Test func `both servers compress text for those who ask, where that is on`() throws {
      let sandbox = try Sandbox()
      let root = try root(sandbox)
      for isOn in [true, false] {
        let features = ServerFeatures(compressesText: isOn)
        let nginx = try sandbox.nginx(root: root, features: features)
        let apache = try sandbox.apache(root: root, features: features)
        for path in ["a.txt", "a.bin"] {
          for url in [nginx.url(path), apache.url(path)] {
            _ = try curl("-H", "Accept-Encoding: gzip", url)
            _ = try curl(url)
          }
        }
        for requests in [try nginx.takeRequests(), try apache.takeRequests()] {
          #expect(
            requests.map { $0.bodyByteCount < 100_000 } == [isOn, false, false, false])
        }
      }
    }

    @Test(.enabled(if: Host.isRoot, "needs root, to mount"))
    func `a tiny disk is full after its bytes and gone with the sandbox`() throws {
      var sandbox: Sandbox? = try Sandbox()
      let disk = try #require(try sandbox?.tinyDisk(byteCount: 1 << 20))
      let file = disk.path + "/x"
      let result = try run(["dd", "if=/dev/zero", "of=\(file)", "bs=64k", "count=64"])
      #expect(result.error.contains("No space left on device"))
      #expect(FileStatus.byteCount(of: file) == 1 << 20)
      sandbox = nil
      #expect(!MountTable.entries().contains { $0.mountpoint == disk.path })
    }

    @Test(.enabled(if: !Host.isRoot, "root may mount"))
    func `a tiny disk tells an ordinary user that it needs root`() throws {
      let error = #expect(throws: HarnessError.self) {
        try Sandbox().tinyDisk(byteCount: 1 << 20)
      }
      #expect(error?.description.contains("needs root") == true)
    }
  }
}
