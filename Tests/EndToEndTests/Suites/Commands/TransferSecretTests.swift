import Foundation
import Glibc
import Testing

/// Passwords, headers and queries of a transfer appear only in its requests.
extension RealMounts {
  @Suite struct TransferSecrets {
    private static let userInfo = "ann:pw-canary"
    private static let query = "token=query-canary"
    private static let header = "X-Key: header-canary"

    /// The texts that must not appear.
    private static let canaries = ["canary", Data(userInfo.utf8).base64EncodedString()]

    private func expectNoSecret(_ text: String, _ place: Comment) {
      for canary in Self.canaries { #expect(!text.contains(canary), place) }
    }

    private static let length: Int64 = 24 << 20

    private func url(_ origin: OriginServer, _ name: String) -> String {
      origin.url(name, length: Self.length, seed: 51, query: Self.query)
        .replacingOccurrences(of: "://", with: "://\(Self.userInfo)@")
    }

    @Test(arguments: [
      "status=404", "status=503", "fault=truncate&fault-at=1m", "fault=redirect-loop",
      "redirect=ftp://ann:pw-canary@host/x?query-canary", "fault=stall-head", "auth=bob:other",
      "fault=html-200", "fault=header-bomb",
      "redirect=http://ann:pw-canary@127.0.0.1:1/query-canary",
    ])
    func `a failure shows none of them`(_ fault: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let target = url(origin, "a.bin") + "&" + fault
      for options in [[], ["--json"], ["-q"], ["-o", "-"]] {
        let result = try work.run(
          ["get", "-H", Self.header, "--retries", "0", "--timeout", "1", target] + options)
        if options != ["-o", "-"] { expectNoSecret(result.output, "output \(options)") }
        expectNoSecret(result.error, "error \(options): \(result.error)")
      }
      expectNoSecret(try work.everything(), "files")
      // The test would prove nothing if the secrets had not been sent.
      let request = try #require(try origin.requests().first)
      #expect(request.fields["x-key"] == "header-canary")
      #expect(request.fields["authorization"] == "Basic " + Self.canaries[1])
    }

    @Test
    func `a download in its middle shows none of them, on a terminal, in JSON or in its record`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.holdEnds(ofLength: Self.length, ["total-rate": "2m"])
      let terminal = try work.terminal("get", "-H", Self.header, url(origin, "a.bin"))
      let json = try work.start("get", "--json", "-H", Self.header, url(origin, "b.bin"))
      let plain = try work.start("get", "-H", Self.header, url(origin, "c.bin"))
      for name in ["a.bin", "b.bin", "c.bin"] { #expect(work.waitForPart(of: name)) }
      #expect(terminal.waitForOutput("a.bin", within: .seconds(60)))
      #expect(Deadline(after: .seconds(60)).wait { json.standardOutput.contains("\n") })
      pause(for: .seconds(1))
      expectNoSecret(try work.everything(), "files")
      try terminal.typeControlC()
      json.signal(SIGINT)
      plain.signal(SIGINT)
      #expect(terminal.wait(within: .seconds(60)) == .exited(130))
      #expect(json.wait(within: .seconds(60)) == .exited(130))
      #expect(plain.wait(within: .seconds(60)) == .exited(130))
      expectNoSecret(terminal.output, "terminal")
      expectNoSecret(json.standardOutput + json.standardError, "JSON")
      expectNoSecret(plain.standardOutput + plain.standardError, "plain")
      expectNoSecret(try work.everything(), "files")
      #expect(try work.everything().contains("/data/a.bin"), "the record names its URL")
    }

    @Test func `an upload shows none of them`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      _ = try work.writeContent("a.bin", seed: 51, byteCount: 2 << 20)
      for query in ["", "&status=403", "&fault=upload-reset"] {
        for options in [[], ["--json"], ["--authenticate-on-challenge"]] {
          let result = try work.run(
            ["put", "-H", Self.header, "--retries", "0", "a.bin", url(origin, "up") + query]
              + options)
          expectNoSecret(result.output + result.error, "\(result.output)\(result.error)")
        }
      }
      #expect(try origin.requests().first?.fields["x-key"] == "header-canary")
    }

    @Test func `bad input shows none of them`() throws {
      let work = try TransferWorkspace()
      for url in [
        "ftp://\(Self.userInfo)@host/a?\(Self.query)", "http://\(Self.userInfo)@/a?\(Self.query)",
        "http://\(Self.userInfo)@host:x/a?\(Self.query)", "\(Self.userInfo)@host/a",
        "http://\(Self.userInfo)@127.0.0.1:1/a?\(Self.query)",
        "http://\(Self.userInfo)@host.invalid/a?\(Self.query)",
        // Characters that end an unencoded password.
        "http://\(Self.userInfo)?x@host/a", "http://\(Self.userInfo)#x@host/a",
      ] {
        let result = try work.get("--retries", "0", "-H", Self.header, url)
        #expect(result.ending.isTransferFailure)
        expectNoSecret(result.output + result.error, "\(result.error)")
        let list = try work.sandbox.write("\(url)\n header=canary\n", to: "list")
        let listed = try work.get("--retries", "0", "-i", list)
        expectNoSecret(listed.output + listed.error, "\(listed.error)")
      }
      let header = try work.get("-H", "no colon header-canary", "http://127.0.0.1:1/a")
      expectNoSecret(header.output + header.error, "\(header.error)")
    }

    @Test(arguments: [
      "http:/ann:pw-canary@host/x", "http:ann:pw-canary@host/x", "//ann:pw-canary@host/x",
      "https//ann:pw-canary@host/x", "ann:pw/canary@host/x", "http:/host/x?sig=canary",
      "host/x?sig=canary", "http://ann:pw-canary@host:x/a?canary",
    ])
    func `a word that was meant as a URL shows no secret, whatever command it is given to`(
      _ word: String
    ) throws {
      let work = try TransferWorkspace()
      let place = try work.sandbox.makeDirectory("mountpoint")
      for command in [
        ["mount", "--no-config", word, place], ["get", "-i", word], ["unmount", word],
        ["status", word], ["prefetch", word, "x"], ["doctor", word], ["cache", "list", word],
        [word], ["get", "--session", word], ["get", "--rate-limit", word, "http://127.0.0.1:1/x"],
        ["get", "--rate-limit=\(word)", "http://127.0.0.1:1/x"], ["get", "--bogus", word],
      ] {
        let result = try work.run(command)
        #expect(!result.succeeded, "\(command)")
        #expect(!result.error.isEmpty, "\(command)")
        expectNoSecret(result.output + result.error, "\(command): \(result.error)")
      }
      // A file of such a name is shown unchanged.
      try work.sandbox.write("no URL\n", to: "work/a:b@c")
      let list = try work.get("-i", "a:b@c")
      #expect(list.error.contains("a:b@c"), "\(list.error)")
    }

    @Test func `confidential headers and the password do not follow a redirect to another origin`()
      throws
    {
      let work = try TransferWorkspace()
      let (first, second) = (try OriginServer(), try OriginServer())
      let target =
        second.url("b.bin", length: 100_000, seed: 52)
        .addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      let download = try work.get(
        "-H", Self.header, "-H", "Cookie: header-canary", "-H", "Authorization: header-canary",
        url(first, "a.bin") + "&redirect=\(target)")
      #expect(download.succeeded, "\(download.error)")
      let upload = try work.put(
        "-H", Self.header, "a.bin", url(first, "up") + "&redirect-status=307&redirect=\(target)")
      #expect(upload.succeeded, "\(upload.error)")
      let requests = try second.requests()
      #expect(Set(requests.map(\.method)) == ["GET", "PUT"])
      for request in requests { expectNoSecret("\(request.fields)", "\(request.fields)") }
      #expect(
        try first.requests().allSatisfy { $0.fields["x-key"] == "header-canary" })
    }

    @Test func `a session file is private, and gone with its last file`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let old = umask(0)
      defer { umask(old) }
      try origin.control("*", ["status": "403"])
      #expect(try work.get("--session", "todo", url(origin, "a.bin")).ending.isTransferFailure)
      #expect(try output(of: ["stat", "-c", "%a", work.path("todo")]) == "600\n")
      try origin.clearControl()
      let second = try work.get("--session", "todo")
      #expect(second.succeeded, "\(second.error)")
      #expect(work.names == ["a.bin"])
      expectNoSecret(second.output + second.error, "\(second.error)")
    }
  }
}
