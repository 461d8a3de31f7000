import Foundation
import Glibc
import Testing

/// `httpfs get` with mirrors of a list and of Metalinks.
///
/// The mirrors are nginx and the Origin, and are dead, cut off, wrong or different.
extension RealMounts {
  @Suite struct GetMirrors {
    private static let byteCount: Int64 = 24 << 20
    private static let sha256 = Digest.ofContent(seed: 71, byteCount: byteCount)

    /// The form of a Metalink.
    enum Form: String, CaseIterable, CustomTestStringConvertible {
      case version4, version3, compressed

      var testDescription: String { rawValue }
    }

    private func write(
      _ document: MetalinkDocument, _ form: Form, in work: TransferWorkspace
    ) throws -> String {
      // The name shows no type: the first character of the content does.
      let path = try work.sandbox.write(
        form == .version3 ? document.version3 : document.version4, to: "list.txt")
      guard form == .compressed else { return path }
      try shell("gzip -f \(quoted(path))")
      return path + ".gz"
    }

    /// Starts two nginx with the same file; the second has one wrong byte under the same entity
    /// tag.
    private func mirrors(
      _ work: TransferWorkspace, wrongByte: Int64, locations: String = ""
    ) throws -> (honest: NginxServer, lying: NginxServer) {
      let honest = try work.sandbox.makeDirectory("honest")
      let lying = try work.sandbox.makeDirectory("lying")
      try TestContent.write(to: "\(honest)/a.bin", seed: 71, byteCount: Self.byteCount)
      try shell(
        """
        cp -p \(quoted(honest))/a.bin \(quoted(lying))/a.bin
        byte=$(od -An -tu1 -j \(wrongByte) -N1 \(quoted(lying))/a.bin)
        printf "\\\\x$(printf %x $((byte ^ 1)))" |
          dd of=\(quoted(lying))/a.bin bs=1 seek=\(wrongByte) conv=notrunc status=none
        touch -r \(quoted(honest))/a.bin \(quoted(lying))/a.bin
        ! cmp -s \(quoted(honest))/a.bin \(quoted(lying))/a.bin
        """)
      return (
        try work.sandbox.nginx(root: honest, locations: locations),
        try work.sandbox.nginx(root: lying, locations: locations)
      )
    }

    // MARK: Wrong bytes

    @Test(arguments: Form.allCases)
    func `a mirror that lies in one byte is found by the piece hashes of a Metalink, and named`(
      _ form: Form
    ) throws {
      let work = try TransferWorkspace()
      let (honest, lying) = try mirrors(work, wrongByte: 100)
      let document = MetalinkDocument(
        name: "sub/a.bin", seed: 71, byteCount: Self.byteCount,
        urls: [lying.url("a.bin"), honest.url("a.bin")], pieceByteCount: 1_000_000)
      let result = try work.get("-x", "4", "-i", try write(document, form, in: work))
      #expect(result.succeeded, "\(result.error)")
      #expect(try work.sha256("sub/a.bin") == Self.sha256)
      #expect(
        result.errorLines.contains {
          $0.contains("a mirror is not used any more: \(lying.url("a.bin"))")
        }, "\(result.error)")
      #expect(FileStatus.files(named: "a.bin.httpfs-part", below: work.directory).isEmpty)
    }

    @Test(arguments: [1, 4])
    func `a mirror that lies is found by the checksum of a list`(_ connections: Int) throws {
      let work = try TransferWorkspace()
      let (honest, lying) = try mirrors(work, wrongByte: 20 << 20)
      let list = try work.sandbox.write(
        """
        \(lying.url("a.bin"))\t\(honest.url("a.bin"))
          checksum=sha-256=\(Self.sha256)

        """, to: "list.txt")
      let result = try work.get("-x", String(connections), "-i", list)
      #expect(result.succeeded, "\(result.error)")
      #expect(try work.sha256("a.bin") == Self.sha256)
    }

    @Test func `where all mirrors lie nothing appears, and the same command mends it later`()
      throws
    {
      let work = try TransferWorkspace()
      let (honest, lying) = try mirrors(work, wrongByte: 3 << 20)
      let list = try write(
        MetalinkDocument(
          seed: 71, byteCount: Self.byteCount, urls: [lying.url("a.bin")],
          pieceByteCount: 1 << 20), .version4, in: work)
      let first = try work.get("-i", list)
      #expect(first.ending == .exited(32))
      #expect(
        first.errorLines.last?.contains("for bytes 3145728-4194303: expected sha-256=") == true,
        "\(first.error)")
      #expect(!work.names.contains("a.bin"))
      try shell("cp -p \(quoted(honest.root))/a.bin \(quoted(lying.root))/a.bin")
      _ = try lying.takeRequests()
      let second = try work.get("-i", list)
      #expect(second.succeeded, "\(second.error)")
      #expect(try work.sha256("a.bin") == Self.sha256)
      #expect(work.names == ["a.bin"])
      #expect(try lying.takeRequests().bodyByteCount < Self.byteCount / 2)
    }

    // MARK: Failing over and spreading

    @Test(arguments: Form.allCases)
    func `a dead mirror is left for one that lives`(_ form: Form) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let dead = "http://127.0.0.1:\(try FreePort.next())/a.bin"
      let document = MetalinkDocument(
        seed: 71, byteCount: Self.byteCount,
        urls: [dead, origin.url("a.bin", length: Self.byteCount, seed: 71)], hasChecksum: true)
      let result = try work.get("-i", try write(document, form, in: work), within: .seconds(30))
      #expect(result.succeeded, "\(result.error)")
      #expect(try work.sha256("a.bin") == Self.sha256)
    }

    @Test func `two mirrors that agree share the work, and one that dies is left to the other`()
      throws
    {
      let work = try TransferWorkspace()
      let origins = [try OriginServer(), try OriginServer()]
      let urls = origins.map {
        $0.url("a.bin", length: Self.byteCount, seed: 71, query: "rate=2m")
      }
      let list = try work.sandbox.write(urls.joined(separator: "\t") + "\n", to: "list.txt")
      let process = try work.start("get", "-x", "4", "-i", list)
      #expect(work.waitForPart(of: "a.bin"))
      // Both mirrors are in use.
      #expect(
        try Deadline(after: .seconds(20)).wait {
          try origins.allSatisfy { try $0.activeRequestCount() > 0 }
        })
      origins[0].stop()
      #expect(process.wait(within: .seconds(60)) == .exited(0), "\(process.standardError)")
      #expect(try work.sha256("a.bin") == Self.sha256)
      // The second mirror is needed up to here.
      #expect(try origins[1].requests().bodyByteCount > Self.byteCount / 3)
    }

    @Test func `mirrors that differ are named and not asked twice`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let urls = [
        origin.url("a.bin", length: Self.byteCount, seed: 71, query: "rate=4m"),
        origin.url("longer.bin", length: Self.byteCount + 1, seed: 71),
        origin.url("gone.bin", length: Self.byteCount, seed: 71, query: "status=404"),
        origin.url("other.bin", length: Self.byteCount, seed: 72),
      ]
      let list = try work.sandbox.write(urls.joined(separator: "\t") + "\n", to: "list.txt")
      let result = try work.get("-x", "6", "-i", list)
      #expect(result.succeeded, "\(result.error)")
      #expect(try work.sha256("a.bin") == Self.sha256)
      let requests = try origin.requests()
      for name in ["longer.bin", "gone.bin", "other.bin"] {
        #expect(requests.of(path: "/data/\(name)").count == 1, "\(name)")
        #expect(
          result.errorLines.contains { $0.contains("not used any more") && $0.contains(name) },
          "\(result.error)")
      }
    }

    @Test func `an interrupted Metalink goes on from its session, which keeps mirrors and pieces`()
      throws
    {
      let work = try TransferWorkspace()
      let (honest, lying) = try mirrors(
        work, wrongByte: 23 << 20, locations: "location / { limit_rate 3m; }")
      let list = try write(
        MetalinkDocument(
          seed: 71, byteCount: Self.byteCount, urls: [lying.url("a.bin"), honest.url("a.bin")],
          pieceByteCount: 1 << 20, hasChecksum: true), .version4, in: work)
      let process = try work.start("get", "-x", "1", "--session", "todo", "-i", list)
      #expect(work.waitForPart(of: "a.bin"))
      process.signal(SIGINT)
      #expect(process.wait(within: .seconds(10)) == .exited(130))
      let session = try work.text("todo")
      #expect(session.contains("  length=\(Self.byteCount)\n"), "\(session)")
      #expect(session.contains("  pieces=sha-256:1048576:"), "\(session)")
      #expect(session.contains("\(lying.url("a.bin"))\t\(honest.url("a.bin"))"), "\(session)")
      let second = try work.get("-x", "4", "--session", "todo")
      #expect(second.succeeded, "\(second.error)")
      #expect(try work.sha256("a.bin") == Self.sha256)
      #expect(work.names == ["a.bin"])
    }

    // MARK: What a Metalink holds

    @Test func `list shows mirrors, checksum, length and pieces of a Metalink`() throws {
      let work = try TransferWorkspace()
      let list = try write(
        MetalinkDocument(
          name: "d/x", seed: 71, byteCount: 3_000_000,
          urls: ["http://one.example/x?token=canary", "https://user:canary@two.example/x"],
          pieceByteCount: 1_000_000, hasChecksum: true), .version3, in: work)
      let result = try work.run(["list", list])
      #expect(
        result.output == """
          d/x\thttp://one.example/x?…
            mirror=https://two.example/x
            checksum=sha-256=\(Digest.ofContent(seed: 71, byteCount: 3_000_000))
            length=3000000
            pieces=sha-256:1000000 (3)

          """, "\(result.error)")
      let json = try work.run(["list", "--json", list]).jsonLines().first
      let file = try #require((json?["files"] as? [[String: Any]])?.first)
      #expect(file["length"] as? Int == 3_000_000)
      let pieces = try #require(file["pieces"] as? [String: Any])
      #expect(pieces["algorithm"] as? String == "sha-256")
      #expect(pieces["length"] as? Int == 1_000_000 && pieces["count"] as? Int == 3)
    }

    @Test func `a Metalink mounts as a list does`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let list = try write(
        MetalinkDocument(
          name: "d/a.bin", seed: 71, byteCount: 2 << 20,
          urls: [origin.url("x", length: 2 << 20, seed: 71)]), .compressed, in: work)
      let mount = try work.sandbox.mount(source: list)
      #expect(
        try output(of: ["sha256sum", "\(mount.mountpoint)/d/a.bin"]).prefix(64)
          == Digest.ofContent(seed: 71, byteCount: 2 << 20))
      _ = try mount.unmount()
    }

    @Test(arguments: [
      ("<metalink xmlns='urn:ietf:params:xml:ns:metalink'><file", "not well-formed XML"),
      (
        "<!DOCTYPE m [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><metalink>&a;</metalink>",
        "a document type declaration"
      ),
      (
        """
        <metalink xmlns='urn:ietf:params:xml:ns:metalink'><file name='../../up'>
        <url>http://127.0.0.1:9/a</url></file></metalink>
        """, "'.' or '..' as a segment of the name"
      ),
      ("<html><body>Sign in</body></html>", "an XML document, but no Metalink"),
    ])
    func `a bad Metalink is refused with its line by every command, and nothing appears`(
      text: String, message: String
    ) throws {
      let work = try TransferWorkspace()
      let list = try work.sandbox.write(text, to: "list.meta4")
      let mountpoint = try work.sandbox.makeDirectory("empty")
      for arguments in [
        ["get", "-i", list], ["list", list],
        ["mount", "--cache-dir", work.sandbox.path("cache"), list, mountpoint],
      ] {
        let result = try work.run(arguments, within: .seconds(20))
        #expect(result.ending == .exited(1), "\(arguments[0])")
        #expect(result.errorLines.count == 1, "\(result.error)")
        #expect(
          result.error.contains("list.meta4:1: \(message)"), "\(arguments[0]): \(result.error)")
      }
      #expect(work.names.isEmpty)
    }
  }
}
