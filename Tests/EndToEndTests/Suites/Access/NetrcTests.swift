import Foundation
import Glibc
import Testing

/// Credentials from a netrc file.
extension RealMounts {
  @Suite struct NetrcFiles {
    /// The credentials that the server requires; a URL must encode the password.
    private static let userInfo = "ann:pw-canary"
    private static let field = "Basic " + Data(userInfo.utf8).base64EncodedString()
    private static let text = "machine 127.0.0.1 login ann password pw-canary\n"

    private func privateFile(_ sandbox: Sandbox, _ name: String) throws -> String {
      let path = try sandbox.write(Self.text, to: name)
      chmod(path, 0o600)
      return path
    }

    @Test func `mount, get and put prove themselves with it, and show nothing of it`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let home = try work.sandbox.makeDirectory("home")
      _ = try privateFile(work.sandbox, "home/.netrc")
      let url = origin.url("a.bin", length: 100_000, seed: 5, query: "auth=\(Self.userInfo)")
      let digest = Digest.ofContent(seed: 5, byteCount: 100_000)

      let asked = try work.get("--retries", "0", "-o", "refused", url)
      #expect(asked.error.contains("HTTP 401"), "\(asked.error)")
      let launcher = ["env", "HOME=\(home)"]
      let download = try run(
        launcher + work.commandLine(["get", "--netrc", "--session", "todo", "-o", "got", url]))
      #expect(download.succeeded, "\(download.error)")
      #expect(try work.sha256("got") == digest)
      _ = try work.writeContent("up", seed: 4, byteCount: 1000)
      let upload = try run(
        launcher
          + work.commandLine([
            "put", "--netrc", "--authenticate-on-challenge", "up",
            origin.url("up", length: 0, seed: 0, query: "auth=\(Self.userInfo)"),
          ]))
      #expect(upload.succeeded, "\(upload.error)")

      let mounted = try work.sandbox.mount(
        urls: [url],
        options: [
          "--netrc-file", "\(home)/.netrc", "--log-level", "trace", "--log-file",
          work.sandbox.path("log"),
        ])
      #expect(try mounted.sha256("a.bin") == digest)
      let status = try output(of: ["cat", mounted.path(".status"), mounted.path(".status.json")])
      #expect(!status.contains("canary") && !status.contains("ann:"))
      #expect(try mounted.unmount() == .exited(0))
      #expect(try origin.requests().contains { $0.fields["authorization"] == Self.field })
      let traces = try run([
        "grep", "-r", "-l", "-e", "canary", "-e", Self.field, work.sandbox.path("log"),
        mounted.cacheDirectory, work.directory,
      ])
      #expect(traces.ending == .exited(1), "\(traces.output)")
    }

    @Test func `a session does not keep its password`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let netrc = try privateFile(work.sandbox, "netrc")
      let failed = try work.get(
        "--netrc-file", netrc, "--session", "todo", "--retries", "0",
        origin.url("a.bin", length: 1000, seed: 5, query: "status=404"))
      #expect(failed.ending == .exited(3))
      #expect(try origin.requests().first?.fields["authorization"] == Self.field)
      #expect(try work.text("todo").contains("/data/a.bin"))
      #expect(try !work.everything().contains("canary"))
    }

    @Test func `its password follows no redirect to another origin, not even on the same host`()
      throws
    {
      let work = try TransferWorkspace()
      let (first, second) = (try OriginServer(), try OriginServer())
      let netrc = try privateFile(work.sandbox, "netrc")
      let target =
        second.url("b.bin", length: 1000, seed: 6)
        .addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      let url = first.url("a.bin", length: 1000, seed: 5, query: "redirect=\(target)")
      let download = try work.get("--netrc-file", netrc, url)
      #expect(download.succeeded, "\(download.error)")
      let mount = try work.sandbox.mount(urls: [url], options: ["--netrc-file", netrc])
      #expect(try mount.sha256("a.bin") == Digest.ofContent(seed: 6, byteCount: 1000))
      #expect(try mount.unmount() == .exited(0))
      #expect(try first.requests().allSatisfy { $0.fields["authorization"] == Self.field })
      let elsewhere = try second.requests()
      #expect(!elsewhere.isEmpty)
      #expect(elsewhere.allSatisfy { $0.fields["authorization"] == nil })
    }

    @Test(arguments: [0o644, 0o640, 0o620, 0o604] as [mode_t])
    func `a file that others may read or change is refused before anything is mounted`(
      _ mode: mode_t
    ) throws {
      let work = try TransferWorkspace()
      let netrc = try work.sandbox.write(Self.text, to: "netrc")
      chmod(netrc, mode)
      let mountpoint = try work.sandbox.makeDirectory("mnt")
      for arguments in [
        ["mount", "--netrc-file", netrc, "--cache-dir", "c", "http://127.0.0.1:1/a", mountpoint],
        ["get", "--netrc-file", netrc, "http://127.0.0.1:1/a"],
        ["put", "--netrc-file", netrc, netrc, "http://127.0.0.1:1/a"],
      ] {
        let result = try work.run(arguments)
        #expect(result.ending == .exited(1))
        #expect(result.error.contains("may be read or changed by other users"), "\(result.error)")
        #expect(!result.error.contains("canary"))
        #expect(MountTable.httpfs(at: mountpoint) == nil)
      }
    }
  }
}
