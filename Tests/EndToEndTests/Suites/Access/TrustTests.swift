import Foundation
import Glibc
import Testing

/// The certificates that a mount trusts and presents, with nginx and an authority of the test.
extension RealMounts {
  @Suite struct Trust {
    private static let byteCount: Int64 = 3 << 20
    private static let digest = Digest.ofContent(seed: 71, byteCount: byteCount)

    private func root(_ sandbox: Sandbox) throws -> String {
      let root = try sandbox.makeDirectory("root")
      try TestContent.write(to: "\(root)/a.bin", seed: 71, byteCount: Self.byteCount)
      return root
    }

    /// Mounts a URL, reads it and unmounts.
    ///
    /// - Returns: the text of `.status` and the log.
    private func read(
      _ sandbox: Sandbox, _ url: String, _ options: [String], isReadable: Bool
    ) throws -> String {
      let log = sandbox.path("log")
      let mount = try sandbox.mount(
        source: url, options: options + ["--log-file", log, "--read-timeout", "10"],
        cache: "cache\(UInt64.random(in: 0...UInt64.max))")
      let result = try run(["sha256sum", mount.path("a.bin")], within: .seconds(60))
      #expect(result.succeeded == isReadable, "\(options) \(result.error)")
      if isReadable { #expect(result.output.prefix(64) == Self.digest) }
      let status = try output(of: ["cat", mount.path(".status"), mount.path(".status.json")])
      #expect(try mount.unmount() == .exited(0))
      return status + (try String(contentsOfFile: log, encoding: .utf8))
    }

    @Test func `a mount trusts the authorities of a file or a directory, and no others`() throws {
      let sandbox = try Sandbox()
      let authority = try sandbox.certificateAuthority()
      let stranger = try sandbox.certificateAuthority()
      let nginx = try sandbox.nginx(
        root: try root(sandbox), features: ServerFeatures(certificate: try authority.certificate()))
      let url = try nginx.secureURL("a.bin")
      let directory = try sandbox.makeDirectory("authorities")
      try output(of: ["cp", authority.certificatePath, "\(directory)/own.pem"])
      try output(of: ["openssl", "rehash", directory])

      for path in [authority.certificatePath, directory] {
        let told = try read(sandbox, url, ["--cacert", path], isReadable: true)
        #expect(told.contains("\"verifies_servers\":true"))
        #expect(!told.contains("NOT verified"))
      }
      let told = try read(sandbox, url, ["--cacert", stranger.certificatePath], isReadable: false)
      #expect(told.contains("TLS failure"), "\(told)")
      _ = try read(sandbox, url, [], isReadable: false)
    }

    @Test func `--insecure reads from anybody, and says so`() throws {
      let sandbox = try Sandbox()
      let authority = try sandbox.certificateAuthority()
      let nginx = try sandbox.nginx(
        root: try root(sandbox),
        features: ServerFeatures(certificate: try authority.selfSignedCertificate()))
      let told = try read(sandbox, try nginx.secureURL("a.bin"), ["--insecure"], isReadable: true)
      #expect(told.contains("\"verifies_servers\":false"))
      #expect(told.contains("https servers are NOT verified"))
      #expect(told.contains("not verified (--insecure)"), "the log: \(told)")
      let work = try TransferWorkspace(sandbox)
      let download = try work.get("--insecure", try nginx.secureURL("a.bin"))
      #expect(download.succeeded, "\(download.error)")
      #expect(try work.sha256("a.bin") == Self.digest)
    }

    @Test func `a client certificate opens what asks for one, for mount, get and put`() throws {
      let work = try TransferWorkspace()
      let sandbox = work.sandbox
      let authority = try sandbox.certificateAuthority()
      let client = try authority.clientCertificate()
      let asking = """
        ssl_client_certificate \(authority.certificatePath);
        ssl_verify_client on;
        """
      let nginx = try sandbox.nginx(
        root: try root(sandbox), locations: asking,
        features: ServerFeatures(certificate: try authority.certificate(), acceptsUploads: true))
      let url = try nginx.secureURL("a.bin")
      let trust = ["--cacert", authority.certificatePath]
      let own = trust + ["--cert", client.path, "--key", client.keyPath]
      let refused = try work.run(["get", "-o", "no", url] + trust)
      #expect(refused.error.contains("HTTP 400"), "\(refused.error)")
      #expect(try work.run(["get", "-o", "got", url] + own).succeeded)
      #expect(try work.sha256("got") == Self.digest)
      let upload = try work.run(["put", "got", try nginx.secureURL("upload/a")] + own)
      #expect(upload.succeeded, "\(upload.error)")
      // The certificate's file may contain the key; relative paths survive the start of a daemon.
      try shell(
        "cat \(quoted(client.path)) \(quoted(client.keyPath)) > \(quoted(work.path("both.pem")))")
      let mountpoint = try sandbox.makeDirectory("mnt-daemon")
      let started = try work.run(
        ["mount", "--daemon", "--cert", "both.pem", "--cache-dir", "cache"] + trust
          + [url, mountpoint])
      #expect(started.succeeded, "\(started.error)")
      #expect(
        try output(of: ["sha256sum", "\(mountpoint)/a.bin"]).prefix(64) == Self.digest)
      try output(of: ["fusermount3", "-u", mountpoint])

      // The certificate is not presented to another server after a redirect.
      let plain = try sandbox.nginx(
        root: nginx.root, locations: "location /away { return 302 \(url); }",
        features: ServerFeatures(certificate: try authority.certificate()))
      let away = try work.run(["get", "-o", "away", try plain.secureURL("away")] + own)
      #expect(away.error.contains("HTTP 400"), "\(away.error)")
    }

    @Test func `files that are of no use are told of before anything is mounted`() throws {
      let work = try TransferWorkspace()
      let sandbox = work.sandbox
      let authority = try sandbox.certificateAuthority()
      let client = try authority.clientCertificate()
      let other = try authority.certificate()
      let mountpoint = try sandbox.makeDirectory("mnt")
      try sandbox.write("no certificate", to: "work/text")
      _ = try sandbox.makeDirectory("work/empty")
      try output(of: [
        "openssl", "pkey", "-in", client.keyPath, "-aes128", "-passout", "pass:canary", "-out",
        work.path("encrypted.key"),
      ])
      for (options, message) in [
        (["--cacert", "absent"], "cannot read the certificate authorities 'absent': No such file"),
        (["--cacert", "text"], "'text' cannot be used: it holds no certificate"),
        (["--cacert", "empty"], "run 'openssl rehash'"),
        (["--cert", "absent"], "cannot read the client certificate 'absent'"),
        (["--cert", client.path, "--key", "absent"], "cannot read the private key 'absent'"),
        (["--cert", "text"], "the certificate's file holds none"),
        (["--cert", client.path], "holds no private key"),
        (
          ["--cert", client.path, "--key", other.keyPath],
          "the private key is not the certificate's"
        ),
        (["--cert", client.path, "--key", "encrypted.key"], "the private key is encrypted"),
        (["--key", client.keyPath], "--key is the private key of a --cert"),
      ] {
        let result = try work.run(
          ["mount"] + options + ["--cache-dir", "cache", "https://127.0.0.1:1/a", mountpoint])
        #expect(!result.succeeded, "\(options)")
        #expect(result.error.contains(message), "\(options): \(result.error)")
        #expect(MountTable.httpfs(at: mountpoint) == nil)
      }
    }
  }
}
