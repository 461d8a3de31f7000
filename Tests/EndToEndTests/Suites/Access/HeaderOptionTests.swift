import Foundation
import Glibc
import Testing

/// Header fields from the command line, from files and from the environment.
///
/// They work for mounts and transfers, and their values stay secret.
extension RealMounts {
  @Suite struct HeaderOptions {
    private static let options = [
      "--header", "X-Line: line-canary", "-HX-Short: short-canary", "--header-env",
      "Authorization=HTTPFS_TEST_TOKEN", "--user-agent", "agent/7",
    ]
    private static let environment = ["HTTPFS_TEST_TOKEN": "Bearer env-canary"]

    private func expectFields(_ request: LoggedRequest) {
      #expect(request.fields["x-line"] == "line-canary")
      #expect(request.fields["x-short"] == "short-canary")
      #expect(request.fields["x-file"] == "file-canary")
      #expect(request.fields["authorization"] == "Bearer env-canary")
      #expect(request.fields["user-agent"] == "agent/7")
    }

    @Test func `a mount sends them to its servers, and shows them nowhere`() throws {
      let sandbox = try Sandbox()
      let (origin, other) = (try OriginServer(), try OriginServer())
      let digest = Digest.ofContent(seed: 3, byteCount: 300_000)
      let headerFile = try sandbox.write("X-File: file-canary\r\n\nX-Two: 2\n", to: "headers")
      let target =
        other.url("b.bin", length: 300_000, seed: 3)
        .addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      let list = try sandbox.write(
        """
        \(origin.url("a.bin", length: 300_000, seed: 3))
        \(origin.url("b.bin", length: 300_000, seed: 3, query: "redirect=\(target)"))
        \(origin.url("own.bin", length: 300_000, seed: 3))
          header=X-Line: own
          user-agent=own
        """, to: "list")
      let log = sandbox.path("log")
      let mount = sandbox.adopt(
        try Mount(
          source: list, mountpoint: try sandbox.makeDirectory("mnt"),
          cacheDirectory: sandbox.path("cache"),
          options: Self.options + [
            "--header-file", headerFile, "--log-level", "trace", "--log-file", log,
          ], launcher: ["env"] + Self.environment.map { "\($0.key)=\($0.value)" }))
      for name in ["a.bin", "b.bin", "own.bin"] { #expect(try mount.sha256(name) == digest) }

      let requests = try origin.requests()
      for request in requests where request.path != "/data/own.bin" { expectFields(request) }
      let own = try #require(requests.first { $0.path == "/data/own.bin" })
      #expect(own.fields["x-line"] == "own")
      #expect(own.fields["user-agent"] == "own")
      #expect(own.fields["x-file"] == "file-canary")
      #expect(requests.contains { $0.path == "/data/a.bin" })
      let elsewhere = try other.requests()
      #expect(!elsewhere.isEmpty)
      for request in elsewhere { #expect(!"\(request.fields)".contains("canary")) }

      let status = try output(of: ["cat", mount.path(".status"), mount.path(".status.json")])
      #expect(!status.contains("canary"))
      let watchdogs = ProcessTable.watchdogs(of: mount.mountpoint)
      #expect(watchdogs.count == 1)
      for process in watchdogs + [mount.process.processID] {
        let line = ProcessTable.commandLine(of: process)
        #expect(!line.joined(separator: " ").contains("canary"), "\(line)")
      }
      #expect(try mount.unmount() == .exited(0))
      #expect(!mount.process.standardError.contains("canary"))
      let traces = try run(["grep", "-r", "-l", "canary", log, mount.cacheDirectory])
      #expect(traces.ending == .exited(1), "\(traces.output)")
    }

    @Test func `get and put send them, too`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try work.sandbox.write("X-File: file-canary\n", to: "work/headers")
      _ = try work.writeContent("up", seed: 4, byteCount: 1000)
      let options = Self.options + ["--header-file", "headers"]
      let launcher = ["env"] + Self.environment.map { "\($0.key)=\($0.value)" }
      for arguments in [
        ["get", origin.url("a.bin", length: 1000, seed: 3)],
        ["put", "up", origin.url("up", length: 0, seed: 0)],
      ] {
        let result = try run(launcher + work.commandLine(arguments + options))
        #expect(result.succeeded, "\(result.error)")
        #expect(!(result.output + result.error).contains("canary"))
      }
      let requests = try origin.requests()
      #expect(Set(requests.map(\.method)) == ["GET", "PUT"])
      for request in requests { expectFields(request) }
    }

    @Test func `what is wrong with them is told before anything is mounted, without a value`()
      throws
    {
      let work = try TransferWorkspace()
      let mountpoint = try work.sandbox.makeDirectory("work/mnt")
      try work.sandbox.write("X-File: 1\nno colon canary\n", to: "work/headers")
      for (options, message) in [
        (["--header", "canary"], "--header: a header is written 'Name: value'"),
        (["--header", "Range: canary"], "httpfs sets the field 'Range' itself"),
        (["--header-file", "headers"], "headers:2: a header is written"),
        (["--header-file", "absent"], "cannot read the header file 'absent': No such file"),
        (["--header-env", "X-A=HTTPFS_TEST_ABSENT"], "'HTTPFS_TEST_ABSENT' is not set"),
        (["--header-env", "X-A"], "--header-env is written NAME=VARIABLE"),
        (["--connect-timeout", "0"], "--connect-timeout must be above 0"),
        (["--stall-timeout", "0"], "--stall-timeout must be from 1"),
        (["--ipv4", "--ipv6"], "exclude each other"),
        (["--interface", "no-such-interface"], "no network interface of that name"),
        (["--cookies", "headers"], "headers:1: a cookie is seven fields"),
        (["--proxy", "http://u:canary@p:0"], "--proxy: proxy 1: the port is not a number"),
        (["--netrc-file", "absent"], "cannot read the netrc file 'absent': No such file"),
      ] {
        let result = try work.run(
          ["mount"] + options + ["--cache-dir", "cache", "http://127.0.0.1:1/a", mountpoint])
        #expect(!result.succeeded, "\(options)")
        #expect(result.error.contains(message), "\(result.error)")
        #expect(!result.error.contains("canary"), "\(result.error)")
        #expect(MountTable.httpfs(at: mountpoint) == nil)
      }
    }

    @Test func `cookies of a file go to their own host, and the file is left as it was`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let text = """
        # Netscape HTTP Cookie File

        127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tcookie-canary
        #HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t4102444800\thidden\tcookie-canary
        other.example\tFALSE\t/\tFALSE\t0\tforeign\tcookie-canary

        """
      try work.sandbox.write(text, to: "work/jar")
      let download = try work.get(
        "--cookies", "jar", "-o", "a", origin.url("a.bin", length: 1000, seed: 3))
      #expect(download.succeeded, "\(download.error)")
      let mount = try work.sandbox.mount(
        urls: [origin.url("b.bin", length: 1000, seed: 3)],
        options: ["--cookies", work.path("jar"), "--ipv4", "--interface", "lo"])
      #expect(try mount.sha256("b.bin") == Digest.ofContent(seed: 3, byteCount: 1000))
      #expect(try mount.unmount() == .exited(0))
      let requests = try origin.requests()
      #expect(Set(requests.map(\.path)) == ["/data/a.bin", "/data/b.bin"])
      for request in requests {
        let cookies = request.fields["cookie"]?.split(separator: "; ").sorted()
        #expect(cookies == ["hidden=cookie-canary", "session=cookie-canary"])
      }
      #expect(try work.text("jar") == text)
    }
  }
}
