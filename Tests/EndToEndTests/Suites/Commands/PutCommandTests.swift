import Foundation
import Glibc
import Testing

/// `httpfs put`: the bytes that the server receives, and the messages to the user.
extension RealMounts {
  @Suite struct PutCommand {
    private static let length: Int64 = 20 << 20

    /// A URL of the Origin that accepts uploads.
    private func url(_ origin: OriginServer, query: String = "") -> String {
      origin.url("up.bin", length: 1, seed: 1, query: query)
    }

    private func uploads(_ origin: OriginServer) throws -> [LoggedRequest] {
      try origin.requests().filter { $0.method != "GET" }
    }

    // MARK: One request

    @Test(arguments: ["PUT", "POST"])
    func `the server receives the bytes of the file`(_ method: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let hash = try work.writeContent("a.bin", seed: 21, byteCount: Self.length)
      let result = try work.put("a.bin", url(origin), "--method", method)
      #expect(result.succeeded, "\(result.error)")
      #expect(result.output.isEmpty)
      #expect(result.error.contains("a.bin: 20 MiB in "), "\(result.error)")
      let request = try #require(try uploads(origin).last)
      #expect(request.method == method)
      #expect(request.requestBodyHash == hash)
      #expect(request.requestBodyByteCount == Self.length)
      #expect(request.fields["content-length"] == String(Self.length))
      #expect(request.fields["content-type"] == "application/octet-stream")
      #expect(work.names == ["a.bin"])
    }

    @Test func `an empty file is uploaded as one`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try work.sandbox.write("", to: "work/empty")
      let result = try work.put("empty", url(origin), "--content-type", "text/x-test")
      #expect(result.succeeded, "\(result.error)")
      let request = try #require(try uploads(origin).last)
      #expect(request.status == 201)
      #expect(request.fields["content-length"] == "0")
      #expect(request.fields["content-type"] == "text/x-test")
    }

    @Test func `--form sends fields and files as browsers do`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try work.sandbox.write("file\r\n--content", to: "work/a \"b\".txt")
      let result = try work.put(
        "--form", "title=one = two", "--form", "doc=@a \"b\".txt", "-o", "-", "-q",
        url(origin, query: "echo=yes"))
      #expect(result.succeeded, "\(result.error)")
      let request = try #require(try uploads(origin).last)
      #expect(request.method == "POST")
      let type = try #require(request.fields["content-type"])
      #expect(type.hasPrefix("multipart/form-data; boundary="))
      let boundary = type.dropFirst("multipart/form-data; boundary=".count)
      #expect(
        result.output == """
          --\(boundary)\r
          Content-Disposition: form-data; name="title"\r
          \r
          one = two\r
          --\(boundary)\r
          Content-Disposition: form-data; name="doc"; filename="a %22b%22.txt"\r
          Content-Type: application/octet-stream\r
          \r
          file\r\n--content\r
          --\(boundary)--\r

          """)
    }

    @Test func `a form of curl and one of ours are the same but for the boundary`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try work.sandbox.write("content", to: "work/a.txt")
      let url = url(origin, query: "echo=yes")
      let ours = try work.put("--form", "f=@a.txt", "--form", "t=x", "-o", "-", "-q", url)
      let theirs = try shell(
        "cd \(quoted(work.directory)) && curl -sS --noproxy '*' "
          + "-F 'f=@a.txt;type=application/octet-stream' -F t=x \(quoted(url))")
      func normalized(_ body: String) -> String {
        let boundary = body.prefix { $0 != "\r\n" && $0 != "\r" }
        return body.replacingOccurrences(of: boundary, with: "BOUNDARY")
      }
      #expect(normalized(ours.output) == normalized(theirs))
      #expect(ours.output.contains("content"))
    }

    @Test func `-o writes the server's answer to a file`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let hash = try work.writeContent("a.bin", seed: 22, byteCount: 1000)
      #expect(try work.put("a.bin", url(origin), "-o", "answer.json").succeeded)
      #expect(try work.text("answer.json").contains(hash))
    }

    // MARK: What is said

    @Test func `--json counts from the first byte to the last one`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      // More than the two kernels buffer ahead of the reader.
      let length: Int64 = 64 << 20
      try shell("truncate -s \(length) \(quoted(work.path("a.bin")))")
      let result = try work.put(
        "--json", "a.bin", url(origin, query: "upload-rate=16m"))
      #expect(result.succeeded, "\(result.error)")
      let lines = try result.jsonLines()
      let sent = lines.dropLast().compactMap { $0["sent"] as? Int64 }
      #expect(sent.count == lines.count - 1)
      #expect(sent == sent.sorted())
      #expect(sent.contains { $0 > 0 && $0 < length / 2 }, "\(sent)")
      #expect(sent.last == length)
      #expect(lines.last?["event"] as? String == "summary")
      #expect(lines.last?["sent"] as? Int64 == length)
      #expect(lines.last?["finished"] as? Int == 1)
    }

    @Test func `a terminal shows a bar that moves`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try shell("truncate -s 48M \(quoted(work.path("a.bin")))")
      let terminal = try work.terminal(
        "put", "a.bin", url(origin, query: "upload-rate=16m"), columns: 100)
      let moves = terminal.waitForScreen { screen in
        let line = screen.lines[0]
        return line.hasPrefix("a.bin") && line.contains("MiB/s") && line.contains("/48 MiB")
          && !line.contains(" 0%")
      }
      #expect(moves, "\(terminal.screen.lines)")
      #expect(terminal.wait(within: .seconds(20)) == .exited(0))
      #expect(terminal.screen.transcript.count == 1)
    }

    @Test func `Ctrl-C ends an upload at once`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try shell("truncate -s 64M \(quoted(work.path("a.bin")))")
      let terminal = try work.terminal("put", "a.bin", url(origin, query: "upload-rate=1m"))
      #expect(terminal.waitForScreen { $0.lines[0].contains("MiB/s") })
      let time = try elapsed {
        try terminal.typeControlC()
        #expect(terminal.wait(within: .seconds(30)) == .exited(130))
      }
      #expect(time < .seconds(2))
      #expect(terminal.output.contains("a.bin: cancelled"))
    }

    // MARK: Redirects

    @Test(arguments: [301, 302, 307, 308])
    func `a redirect keeps method and body`(_ status: Int) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let hash = try work.writeContent("a.bin", seed: 23, byteCount: Self.length)
      let result = try work.put(
        "a.bin", url(origin, query: "redirect=/data/target.bin&redirect-status=\(status)"))
      #expect(result.succeeded, "\(result.error)")
      let target = try origin.requests().of(path: "/data/target.bin")
      #expect(target.map(\.method) == ["PUT"])
      #expect(target.first?.requestBodyHash == hash)
    }

    @Test(arguments: [(301, "PUT"), (302, "POST"), (303, "PUT"), (307, "PUT")])
    func `--redirect-as-get does as browsers do, but is no success without the body`(
      _ status: Int, _ method: String
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let hash = try work.writeContent("a.bin", seed: 23, byteCount: 1000)
      let result = try work.put(
        "a.bin", "--redirect-as-get", "--method", method,
        url(origin, query: "redirect=/data/target.bin&redirect-status=\(status)"))
      // The origin redirects before it has read the body, for which libcurl waits for permission.
      #expect(result.succeeded == (status == 307), "\(result.error)")
      if status != 307 { #expect(result.error.contains("before it had the whole body")) }
      let target = try #require(try origin.requests().of(path: "/data/target.bin").first)
      #expect(target.method == (status == 307 ? method : "GET"))
      #expect(target.requestBodyHash == (status == 307 ? hash : nil))
      if status != 307 { #expect(target.fields["content-type"] == nil) }
    }

    // MARK: Credentials

    @Test func `credentials of the URL go with the first send`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let hash = try work.writeContent("a.bin", seed: 24, byteCount: Self.length)
      try origin.control("*", ["auth": "ann:s3cret"])
      let target = url(origin).replacingOccurrences(of: "http://", with: "http://ann:s3cret@")
      let result = try work.put("a.bin", target)
      #expect(result.succeeded, "\(result.error)")
      let requests = try uploads(origin)
      #expect(requests.map(\.status) == [201])
      #expect(requests.first?.requestBodyHash == hash)
    }

    @Test func `--authenticate-on-challenge sends again, and the count goes back`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let length: Int64 = 48 << 20
      let hash = try work.writeContent("a.bin", seed: 24, byteCount: length)
      try origin.control(
        "*", ["auth": "ann:s3cret", "auth-mode": "late", "upload-rate": "16m"])
      let target = url(origin).replacingOccurrences(of: "http://", with: "http://ann:s3cret@")
      let result = try work.put("--json", "--authenticate-on-challenge", "a.bin", target)
      #expect(result.succeeded, "\(result.error) \(result.output)")
      let requests = try uploads(origin)
      #expect(requests.map(\.status) == [401, 201])
      #expect(requests.first?.fields["authorization"] == nil)
      #expect(requests.last?.requestBodyHash == hash)
      let lines = try result.jsonLines()
      let sent = lines.dropLast().compactMap { $0["sent"] as? Int64 }
      #expect(sent != sent.sorted(), "\(sent)")
      #expect(sent.last == length)
      #expect(lines.last?["sent"] as? Int64 == length)
    }

    @Test func `a wrong password is asked for once`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      _ = try work.writeContent("a.bin", seed: 24, byteCount: 1000)
      try origin.control("*", ["auth": "ann:s3cret"])
      for options in [[], ["--authenticate-on-challenge"]] {
        try origin.clearLog()
        let target = url(origin).replacingOccurrences(of: "http://", with: "http://ann:wrong@")
        let result = try work.run(["put", "a.bin", target] + options)
        #expect(result.ending == .exited(24))
        #expect(result.error.contains("HTTP 401"), "\(result.error)")
        #expect(!result.error.contains("wrong"))
        #expect(try uploads(origin).count == 1 + options.count)
      }
    }
  }
}
