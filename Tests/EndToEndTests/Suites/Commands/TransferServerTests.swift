import Foundation
import Glibc
import Testing

/// `httpfs get` and `httpfs put` with nginx and Apache.
///
/// Plain and over TLS, HTTP/1.1 and HTTP/2, compressed or not, with passwords.
extension RealMounts {
  @Suite struct TransferServers {
    enum Server: String, CaseIterable, CustomTestStringConvertible {
      case nginx, apache

      var testDescription: String { rawValue }
    }

    enum Line: CaseIterable {
      case plain, tls, http2
    }

    private static let credentials = ServerFeatures.Credentials(user: "ann", password: "s3cret: x")
    /// The credentials as a URL contains them.
    private static let userInfo = "ann:s3cret%3A%20x"
    private static let byteCount: Int64 = 20 << 20
    private static let sha256 = Digest.ofContent(seed: 41, byteCount: byteCount)

    /// A running server of one of the kinds.
    private struct Running {
      let url: (String) -> String
      let secureURL: (String) throws -> String
      let requests: () throws -> [LoggedRequest]
      let writable: WritableArea
      /// Keeps the server alive.
      let owner: AnyObject
    }

    private func start(
      _ server: Server, _ sandbox: Sandbox, _ features: ServerFeatures, root: String
    ) throws -> Running {
      switch server {
      case .nginx:
        let nginx = try sandbox.nginx(root: root, features: features)
        return Running(
          url: nginx.url, secureURL: { try nginx.secureURL($0) }, requests: nginx.takeRequests,
          writable: nginx.writable, owner: nginx)
      case .apache:
        let apache = try sandbox.apache(root: root, features: features)
        return Running(
          url: apache.url, secureURL: { try apache.secureURL($0) }, requests: apache.takeRequests,
          writable: apache.writable, owner: apache)
      }
    }

    /// Creates a directory with 20 MB of two kinds: bytes that no server compresses, and text.
    private func root(_ sandbox: Sandbox) throws -> (path: String, textDigest: String) {
      let root = try sandbox.makeDirectory("root")
      try TestContent.write(to: "\(root)/a.bin", seed: 41, byteCount: Self.byteCount)
      try shell("seq 2700000 > \(quoted(root))/a.txt")
      return (root, try String(output(of: ["sha256sum", "\(root)/a.txt"]).prefix(64)))
    }

    // MARK: Downloads

    @Test(arguments: Server.allCases, Line.allCases)
    func `20 MB arrive whole over every kind of line, compressed or not`(
      _ server: Server, _ line: Line
    ) throws {
      let work = try TransferWorkspace()
      let root = try root(work.sandbox)
      let authority = try work.sandbox.certificateAuthority()
      for isCompressed in [false, true] {
        let features = ServerFeatures(
          certificate: try authority.certificate(), http2: line == .http2,
          compressesText: isCompressed)
        let running = try start(server, work.sandbox, features, root: root.path)
        func url(_ path: String) throws -> String {
          line == .plain ? running.url(path) : try running.secureURL(path)
        }
        var options = line == .plain ? [] : ["--ca-file", authority.certificatePath]
        if line == .http2 { options.append("--http2") }
        let directory = isCompressed ? "compressed/" : "as-is/"

        let binary = try work.run(
          ["get", "-x", "4", "-o", directory, try url("a.bin"), try url("a.txt")] + options)
        #expect(binary.succeeded, "\(binary.error)")
        #expect(try work.sha256(directory + "a.bin") == Self.sha256)
        #expect(try work.sha256(directory + "a.txt") == root.textDigest)
        let requests = try running.requests()
        let version =
          switch (server, line) {
          case (.nginx, .http2): "HTTP/2.0"
          case (.apache, .http2): "HTTP/2.0"
          default: "HTTP/1.1"
          }
        #expect(requests.allSatisfy { $0.protocolVersion == version }, "\(requests)")
        // Without --compressed nothing is compressed, so ranges refer to the file.
        #expect(requests.bodyByteCount >= Self.byteCount * 9 / 10 + Self.byteCount)

        let text = try work.run(
          ["get", "--compressed", "-o", directory + "text", try url("a.txt")] + options)
        #expect(text.succeeded, "\(text.error)")
        #expect(try work.sha256(directory + "text") == root.textDigest)
        let textRequests = try running.requests()
        #expect(textRequests.count == 1)
        #expect((textRequests.bodyByteCount < Self.byteCount / 2) == isCompressed)
      }
    }

    @Test(arguments: Server.allCases)
    func `an interrupted download goes on at the server's word that nothing has changed`(
      _ server: Server
    ) throws {
      let work = try TransferWorkspace()
      let root = try root(work.sandbox)
      // A file that was modified in the second of the response has no strong validator yet.
      let old = timeval(tv_sec: 1_600_000_000, tv_usec: 0)
      try #require(utimes("\(root.path)/a.bin", [old, old]) == 0)
      let running = try start(server, work.sandbox, ServerFeatures(), root: root.path)
      // The file size limit stops this command in the middle.
      let command = try work.commandLine(["get", "-x", "2", running.url("a.bin")])
      let first = try run(["prlimit", "--fsize=\(10 << 20)"] + command)
      #expect(first.ending != .exited(0))
      _ = try running.requests()
      let second = try work.get(running.url("a.bin"))
      #expect(second.succeeded, "\(second.error)")
      #expect(try work.sha256("a.bin") == Self.sha256)
      #expect(try running.requests().bodyByteCount < Self.byteCount * 3 / 4)
    }

    @Test(arguments: Server.allCases)
    func `curl and httpfs bring the same file, name and all`(_ server: Server) throws {
      let work = try TransferWorkspace()
      let root = try work.sandbox.makeDirectory("names")
      let names = ["with space.bin", "ünïcode.bin", "percent%41.bin", "plus+.bin", "empty"]
      for (index, name) in names.enumerated() {
        try TestContent.write(
          to: "\(root)/\(name)", seed: UInt64(index), byteCount: name == "empty" ? 0 : 70_000)
      }
      let running = try start(server, work.sandbox, ServerFeatures(), root: root)
      for name in names {
        let encoded = try #require(
          name.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(.init(["."]))))
        let result = try work.get(running.url(encoded))
        #expect(result.succeeded, "\(result.error)")
        let oracle = work.sandbox.path("oracle")
        try output(of: ["curl", "-sS", "--noproxy", "*", "-o", oracle, running.url(encoded)])
        try output(of: ["cmp", oracle, work.path(name)])
      }
      #expect(work.names == names.sorted())
    }

    // MARK: TLS

    @Test(arguments: Server.allCases)
    func `a certificate of an unknown authority is refused in one line`(_ server: Server) throws {
      let work = try TransferWorkspace()
      let root = try root(work.sandbox)
      let authority = try work.sandbox.certificateAuthority()
      let stranger = try work.sandbox.certificateAuthority()
      let running = try start(
        server, work.sandbox, ServerFeatures(certificate: try authority.certificate()),
        root: root.path)
      let url = try running.secureURL("a.bin")
      for options in [[], ["--ca-file", stranger.certificatePath]] {
        let result = try work.run(["get", url] + options, within: .seconds(10))
        #expect(result.ending == .exited(60))
        #expect(result.errorLines.count == 1, "\(result.error)")
        #expect(result.error.hasPrefix("a.bin: failed: TLS failure: "), "\(result.error)")
        #expect(result.error.contains("certificate"), "\(result.error)")
      }
      #expect(work.names.isEmpty)
    }

    @Test(arguments: ["expired", "other host", "self-signed"])
    func `a bad certificate of a known authority is refused in one line`(_ flaw: String) throws {
      let work = try TransferWorkspace()
      let root = try root(work.sandbox)
      let authority = try work.sandbox.certificateAuthority()
      let (certificate, word) =
        switch flaw {
        case "expired": (try authority.expiredCertificate(), "expired")
        case "other host": (try authority.otherHostCertificate(), "localhost")
        default: (try authority.selfSignedCertificate(), "self-signed")
        }
      let features = ServerFeatures(certificate: certificate, acceptsUploads: true)
      let running = try start(.nginx, work.sandbox, features, root: root.path)
      let trust = ["--ca-file", authority.certificatePath]
      let result = try work.run(["get", try running.secureURL("a.bin")] + trust)
      #expect(result.ending == .exited(60))
      #expect(result.errorLines.count == 1, "\(result.error)")
      #expect(result.error.hasPrefix("a.bin: failed: TLS failure: "), "\(result.error)")
      #expect(result.error.contains(word), "\(result.error)")
      #expect(work.names.isEmpty)

      try work.sandbox.write("x", to: "work/up")
      let upload = try work.run(["put", "up", try running.secureURL("upload/x")] + trust)
      #expect(upload.ending == .exited(60))
      #expect(upload.error.contains("TLS failure: "), "\(upload.error)")
      #expect(FileStatus.byteCount(of: running.writable.path(of: "upload/x")) == nil)
    }

    @Test func `a CA file that is missing or none is named before anything is sent`() throws {
      let work = try TransferWorkspace()
      let missing = try work.get("--ca-file", "no-such.pem", "https://127.0.0.1:9/a")
      #expect(missing.ending == .exited(1))
      #expect(missing.errorLines.count == 1)
      #expect(missing.error.contains("'no-such.pem'"), "\(missing.error)")
    }

    @Test func `a redirect from https to http is refused, and the target never asked`() throws {
      let work = try TransferWorkspace()
      let root = try root(work.sandbox)
      let authority = try work.sandbox.certificateAuthority()
      let target = try work.sandbox.nginx(root: root.path)
      let nginx = try work.sandbox.nginx(
        root: root.path,
        locations: "location /away/ { return 302 \(target.url("a.bin")); }",
        features: ServerFeatures(certificate: try authority.certificate()))
      let trust = ["--ca-file", authority.certificatePath]
      let result = try work.run(["get", try nginx.secureURL("away/a.bin")] + trust)
      #expect(result.ending == .exited(23))
      #expect(result.errorLines.count == 1, "\(result.error)")
      #expect(result.error.contains("redirect refused: from https to http"), "\(result.error)")
      try work.sandbox.write("x", to: "work/up")
      let upload = try work.run(["put", "up", try nginx.secureURL("away/a.bin")] + trust)
      #expect(upload.ending == .exited(23))
      #expect(upload.error.contains("redirect refused"), "\(upload.error)")
      #expect(try target.takeRequests().isEmpty)
      // The redirect in the other direction is common.
      let plain = try work.sandbox.nginx(
        root: root.path,
        locations: "location /up/ { return 301 \(try nginx.secureURL("a.bin")); }")
      #expect(try work.run(["get", plain.url("up/a.bin")] + trust).succeeded)
      #expect(try work.sha256("a.bin") == Self.sha256)
    }

    // MARK: Uploads

    @Test(arguments: Server.allCases, Line.allCases)
    func `20 MB are stored whole, and the password is asked for`(
      _ server: Server, _ line: Line
    ) throws {
      let work = try TransferWorkspace()
      let root = try work.sandbox.makeDirectory("root")
      let authority = try work.sandbox.certificateAuthority()
      let features = ServerFeatures(
        certificate: try authority.certificate(), http2: line == .http2, acceptsUploads: true,
        credentials: Self.credentials)
      let running = try start(server, work.sandbox, features, root: root)
      try TestContent.write(to: work.path("a.bin"), seed: 41, byteCount: Self.byteCount)
      var options = line == .plain ? [] : ["--ca-file", authority.certificatePath]
      if line == .http2 { options.append("--http2") }
      func url(_ path: String, userInfo: String? = nil) throws -> String {
        let url = line == .plain ? running.url(path) : try running.secureURL(path)
        return userInfo.map { url.replacingOccurrences(of: "://", with: "://\($0)@") } ?? url
      }
      func stored(_ path: String) throws -> String {
        try String(output(of: ["sha256sum", running.writable.path(of: path)]).prefix(64))
      }

      let open = try work.run(["put", "a.bin", try url("upload/a")] + options)
      #expect(open.succeeded, "\(open.error)")
      #expect(try stored("upload/a") == Self.sha256)

      let refused = try work.run(["put", "a.bin", try url("private/a")] + options)
      #expect(refused.ending == .exited(24))
      #expect(refused.error.contains("HTTP 401"), "\(refused.error)")
      _ = try running.requests()

      let first = try work.run(
        ["put", "a.bin", try url("private/b", userInfo: Self.userInfo)] + options)
      #expect(first.succeeded, "\(first.error)")
      #expect(try stored("private/b") == Self.sha256)
      #expect(try running.requests().map(\.status) == [201])

      let challenged = try work.run(
        ["put", "--json", "--authenticate-on-challenge", "a.bin"]
          + [try url("private/c", userInfo: Self.userInfo)] + options)
      #expect(challenged.succeeded, "\(challenged.output)")
      #expect(try stored("private/c") == Self.sha256)
      #expect(try running.requests().map(\.status) == [401, 201])
      let summary = try #require(try challenged.jsonLines().last)
      #expect(summary["sent"] as? Int64 == Self.byteCount)

      let wrong = try work.run(
        ["put", "a.bin", try url("private/d", userInfo: "ann:wrong")] + options)
      #expect(wrong.ending == .exited(24))
      #expect(wrong.error.contains("HTTP 401"), "\(wrong.error)")
      #expect(FileStatus.byteCount(of: running.writable.path(of: "private/d")) == nil)

      // The stored file can be downloaded with the password.
      let back = try work.run(
        ["get", "-o", "back", try url("private/c", userInfo: Self.userInfo)] + options)
      #expect(back.succeeded, "\(back.error)")
      #expect(try work.sha256("back") == Self.sha256)
    }

    @Test(arguments: Server.allCases)
    func `an upload that the server does not take is told with its status`(_ server: Server) throws
    {
      let work = try TransferWorkspace()
      let root = try work.sandbox.makeDirectory("root")
      let running = try start(
        server, work.sandbox, ServerFeatures(acceptsUploads: true), root: root)
      try TestContent.write(to: work.path("a.bin"), seed: 41, byteCount: 5 << 20)
      let result = try work.put("a.bin", running.url("elsewhere"))
      #expect(result.ending == .exited(22))
      #expect(result.error.contains("HTTP 405"), "\(result.error)")
    }
  }
}
