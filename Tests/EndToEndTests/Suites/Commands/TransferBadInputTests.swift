import Foundation
import Glibc
import Testing

/// Impossible requests are refused in one clear line, and nothing is lost.
extension RealMounts {
  @Suite struct TransferBadInput {
    /// Expects one line that names the failure, and no files in the directory other than `names`.
    private func expectRefusal(
      _ result: CommandResult, _ work: TransferWorkspace, mentions texts: String...,
      leaving names: [String] = []
    ) {
      #expect(result.ending.isTransferFailure)
      // A slow enough download first prints its source.
      let refusals = result.errorLines.filter { !$0.contains(" from http://") }
      #expect(refusals.count == 1, "\(result.error)")
      for text in texts { #expect(result.error.contains(text), "\(result.error)") }
      #expect(work.names == names)
    }

    // MARK: Names

    @Test func `an argument that is not UTF-8 is refused, and no other name is made of it`() throws
    {
      let work = try TransferWorkspace()
      let result = try run([
        "env", "--chdir", work.directory, "sh", "-c",
        #"exec "$0" get -o "$(printf 'caf\351.bin')" http://127.0.0.1:9/a"#, Products.httpfs,
      ])
      #expect(result.ending == .exited(64))
      #expect(result.error.contains("not UTF-8"), "\(result.error)")
      #expect(work.names.isEmpty)
    }

    @Test func `a trace does not replace a file that is none`() throws {
      let work = try TransferWorkspace()
      let place = try work.sandbox.makeDirectory("mountpoint")
      try work.sandbox.write("precious\n", to: "work/list")
      let result = try work.run(
        ["mount", "--no-config", "--trace", "list", "http://127.0.0.1:9/a", place],
        within: .seconds(10))
      expectRefusal(result, work, mentions: "'list' is not a trace", leaving: ["list"])
      #expect(try work.text("list") == "precious\n")
    }

    @Test func `JSON that cannot be written is a failure, and the file comes all the same`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try run([
        "env", "--chdir", work.directory, "sh", "-c",
        #"exec "$0" get --json "$1" >/dev/full"#, Products.httpfs,
        origin.url("a.bin", length: 1000, seed: 1),
      ])
      expectRefusal(result, work, mentions: "cannot write to standard output", leaving: ["a.bin"])
    }

    // MARK: Usage

    @Test(arguments: [
      [], ["--no-such-option", "http://127.0.0.1:9/a"], ["-x", "0", "http://127.0.0.1:9/a"],
      ["-x", "many", "http://127.0.0.1:9/a"], ["-j", "65", "http://127.0.0.1:9/a"],
      ["--timeout", "0", "http://127.0.0.1:9/a"], ["--retries", "-1", "http://127.0.0.1:9/a"],
      ["-o", "-", "http://127.0.0.1:9/a", "http://127.0.0.1:9/b"],
      ["-o", "-", "--json", "http://127.0.0.1:9/a"], ["-o", "", "http://127.0.0.1:9/a"],
      ["--checksum", "sha-256=00", "http://127.0.0.1:9/a", "http://127.0.0.1:9/b"],
    ])
    func `bad usage ends with 64`(_ arguments: [String]) throws {
      let work = try TransferWorkspace()
      let result = try work.run(["get"] + arguments, within: .seconds(10))
      #expect(result.ending == .exited(64))
      #expect(result.error.hasPrefix("httpfs: "), "\(result.error)")
      #expect(work.names.isEmpty)
    }

    @Test(arguments: [
      "not a url", "127.0.0.1/a", "ftp://127.0.0.1/a", "http:///a", "http://127.0.0.1:99999/a",
      "http://127.0.0.1:9/", "http://127.0.0.1:9/..", "http://127.0.0.1:9/a b",
    ])
    func `a bad URL is refused`(_ url: String) throws {
      let work = try TransferWorkspace()
      expectRefusal(try work.get(url), work, mentions: "httpfs: '\(url)': ")
    }

    @Test func `one bad URL of several keeps all from being fetched, and each bad one is named`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(
        origin.url("a.bin", length: 10, seed: 1), "ftp://127.0.0.1/a", "http:///b")
      #expect(result.ending == .exited(1))
      #expect(result.errorLines.count == 2, "\(result.error)")
      #expect(work.names.isEmpty)
      #expect(try origin.requests().isEmpty)
    }

    @Test(arguments: [
      "sha-256", "sha-256=abc", "crc32=00000000", "sha-256=\(String(repeating: "x", count: 64))",
    ])
    func `a checksum that is none is refused`(_ checksum: String) throws {
      let work = try TransferWorkspace()
      expectRefusal(
        try work.get("--checksum", checksum, "http://127.0.0.1:9/a"), work,
        mentions: "httpfs: --checksum: ", "checksum")
    }

    @Test func `a list that is missing or bad is named with its lines`() throws {
      let work = try TransferWorkspace()
      expectRefusal(try work.get("-i", "no-such-list"), work, mentions: "'no-such-list'")
      try work.sandbox.write("http://127.0.0.1:9/a\n out=../b\n", to: "work/list")
      expectRefusal(try work.get("-i", "list"), work, mentions: "list:2:", leaving: ["list"])
    }

    @Test(arguments: ["no colon", "bad name : x", ": x", "X: a\u{1}b"])
    func `a bad header is refused without its value`(_ header: String) throws {
      let work = try TransferWorkspace()
      expectRefusal(
        try work.get("-H", header, "http://127.0.0.1:9/a"), work, mentions: "--header: ")
    }

    // MARK: Destinations

    @Test func `a destination that is a directory is refused before anything is fetched`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 10, seed: 1)
      _ = try work.sandbox.makeDirectory("work/a.bin")
      expectRefusal(
        try work.get(url), work, mentions: "'a.bin' is a directory", leaving: ["a.bin"])
      #expect(try origin.requests().isEmpty)
    }

    @Test func `a destination below a file, or a device, is refused before anything is fetched`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 10, seed: 1)
      try work.sandbox.write("precious", to: "work/file")
      expectRefusal(
        try work.get(url, "-o", "file/x"), work, mentions: "'file/x'", "Not a directory",
        leaving: ["file"])
      expectRefusal(
        try work.get(url, "-o", "/dev/zero"), work, mentions: "'/dev/zero'", "regular file",
        leaving: ["file"])
      expectRefusal(
        try work.get(url, "-o", String(repeating: "n", count: 256)), work, mentions: "255 bytes",
        leaving: ["file"])
      #expect(try work.text("file") == "precious")
      #expect(try origin.requests().isEmpty)
    }

    @Test func `the longest name that there can be is one that works`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let name = String(repeating: "n", count: 255)
      let result = try work.get(origin.url("a.bin", length: 10, seed: 1), "-o", name)
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == [name])
    }

    @Test(.enabled(if: Host.isRoot, "needs root, to become another user"))
    func `a directory that the user may not write is refused before anything is fetched`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 10, seed: 1)
      let asUser = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
      for path in ["a.bin", "new/a.bin"] {
        let result = try run(asUser + work.commandLine(["get", url, "-o", path]))
        expectRefusal(result, work, mentions: "'\(path)'", "Permission denied")
      }
      #expect(try origin.requests().isEmpty)
    }

    @Test func `no file gets the bytes of another one that has the name of its partial file`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(
        origin.url("a", length: 3 << 20, seed: 1, query: "total-rate=3m"),
        origin.url("a.httpfs-part", length: 1000, seed: 2))
      #expect(result.ending == .exited(9))
      #expect(result.error.contains("has the name of a partial file"), "\(result.error)")
      #expect(work.names == ["a"])
      #expect(try work.sha256("a") == Digest.ofContent(seed: 1, byteCount: 3 << 20))
    }

    @Test(arguments: ["Content-Length: 2", "transfer-encoding: chunked"])
    func `a header that would cut the body is refused`(_ header: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try work.sandbox.write("hello", to: "work/up")
      let url = origin.url("a.bin", length: 9, seed: 1)
      for command in [["get", url], ["put", "up", url]] {
        let result = try work.run(command + ["-H", header])
        #expect(result.ending == .exited(1))
        #expect(result.error.contains("--header: httpfs sets the field"), "\(result.error)")
      }
      #expect(try origin.requests().isEmpty)
    }

    @Test func `a URL without a scheme is shown without one, and without its password`() throws {
      let work = try TransferWorkspace()
      let result = try work.get("ann:canary@host/a")
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("'host/a': malformed URL: no scheme"), "\(result.error)")
    }

    @Test func `a list without -i, and a URL after -H, are told from URLs and headers`() throws {
      let work = try TransferWorkspace()
      try work.sandbox.write("http://127.0.0.1:9/a\n", to: "work/list.txt")
      let list = try work.get("list.txt")
      #expect(list.error.contains("'list.txt' is a file, and no URL: a list needs -i"))
      let header = try work.get("http://127.0.0.1:9/a", "-H", "https://127.0.0.1:9/b")
      #expect(header.ending == .exited(1))
      #expect(header.error.contains("--header: a header is written 'Name: value'"))
    }

    // MARK: Full disks

    @Test(.enabled(if: Host.isRoot, "needs root, to mount"))
    func `a file that is longer than the free space is not begun`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let disk = try work.sandbox.tinyDisk(byteCount: 4 << 20)
      try FileManager.default.createDirectory(
        atPath: disk.path + "/there", withIntermediateDirectories: false)
      let result = try work.get(
        origin.url("a.bin", length: 512 << 20, seed: 1), "-o", disk.path + "/there/a.bin")
      expectRefusal(result, work, mentions: "a.bin", "needs 512 MiB, and only", "free")
      #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path + "/there").isEmpty)
      let requests = try origin.requests()
      #expect(requests.count == 1)
      // The kernel may hold as much of the answer as its socket buffers can grow to.
      #expect(requests.bodyByteCount < 64 << 20)
    }

    @Test(.enabled(if: Host.isRoot, "needs root, to mount"))
    func `a disk that fills up under a body of unknown length is told of`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let disk = try work.sandbox.tinyDisk(byteCount: 4 << 20)
      let path = disk.path + "/a.bin"
      try "precious".write(toFile: path, atomically: false, encoding: .utf8)
      let result = try work.get(
        "--overwrite", origin.url("a.bin", length: 16 << 20, seed: 1, query: "chunked=yes"),
        "-o", path)
      expectRefusal(result, work, mentions: "No space left on device", "free some space")
      #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
    }

    @Test(.enabled(if: Host.isRoot, "needs root, to mount"), arguments: ["", "chunked=yes"])
    func `a disk without any room is left as it was`(_ query: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let disk = try work.sandbox.tinyDisk(byteCount: 4 << 20)
      _ = try run(["dd", "if=/dev/zero", "of=\(disk.path)/other", "bs=4k"])
      let result = try work.get(
        origin.url("a.bin", length: 16 << 20, seed: 1, query: query), "-o", disk.path + "/a.bin")
      expectRefusal(result, work, mentions: "a.bin")
      #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == ["other"])
    }

    @Test(.enabled(if: Host.isRoot, "needs root, to mount"))
    func `a download goes on when the disk that was full has room again`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let disk = try work.sandbox.tinyDisk(byteCount: 12 << 20)
      let path = disk.path + "/a.bin"
      let url = origin.url("a.bin", length: 10 << 20, seed: 1, query: "rate=4m")
      let process = try work.start("get", "-x", "1", url, "-o", path)
      #expect(
        Deadline(after: .seconds(10)).wait {
          (FileStatus.byteCount(of: path + ".httpfs-part") ?? 0) > 0
        })
      // Another program takes the space that was free at the beginning.
      _ = try run(["dd", "if=/dev/zero", "of=\(disk.path)/other", "bs=64k"])
      #expect(process.wait(within: .seconds(20)) == .exited(9))
      #expect(
        process.standardError.contains("No space left on device"), "\(process.standardError)")
      #expect(unlink(disk.path + "/other") == 0)
      try origin.clearLog()
      let second = try work.get(url, "-o", path)
      #expect(second.succeeded, "\(second.error)")
      #expect(
        try String(output(of: ["sha256sum", path]).prefix(64))
          == Digest.ofContent(seed: 1, byteCount: 10 << 20))
      #expect(try origin.requests().bodyByteCount < 10 << 20)
    }

    @Test func `standard output on a full disk is told of`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let command = try work.commandLine(["get", "-o", "-", origin.url("a", length: 9, seed: 1)])
        .map(quoted).joined(separator: " ")
      let result = try run(["bash", "-c", "\(command) > /dev/full"])
      #expect(result.ending == .exited(9))
      #expect(
        result.errorLines
          == ["httpfs: cannot write to standard output: No space left on device"])
    }
  }
}
