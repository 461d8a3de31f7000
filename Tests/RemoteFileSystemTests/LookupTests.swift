import Glibc
import RemoteFileSystem
import Testing

/// Look-ups of names and the attributes of inodes.
@Suite(.timeLimit(.minutes(1))) struct LookupTests {
  private let served: ServedFileSystem

  init() throws {
    served = try ServedFileSystem(
      [
        "dir/a.bin": .bytes(ServedFileSystem.bytes(5000)), "missing": .status(404),
        "denied": .status(403), "silent": .silence,
        "list/": .page("<a href=\"b.bin\">b.bin</a>"), "list/b.bin": .bytes([1, 2, 3]),
      ], listings: ["list/"])
  }

  @Test("A look-up shows a file as its server describes it")
  func file() async throws {
    let directory = try #require(await served.lookup("dir").entry)
    #expect(directory.values.st_mode & S_IFMT == S_IFDIR)
    let file = try #require(await served.lookup("a.bin", in: directory.inode.rawValue).entry)
    #expect(file.values.st_mode == S_IFREG | 0o444)
    #expect(file.values.st_size == 5000)
    #expect(file.values.st_ino == file.inode.rawValue)
    #expect(file.timeout == FileAttributes.standardTimeout)
    let same = try #require(await served.attributes(file.inode.rawValue).attributes)
    #expect(same.values.st_size == 5000)
    // The second look-up sends no request.
    #expect(try await served.inode("a.bin", in: directory.inode.rawValue) == file.inode.rawValue)
    #expect(served.server.targets == ["/dir/a.bin"])
  }

  @Test("A listing is read for the first look-up below it")
  func listed() async throws {
    let directory = try await served.inode("list")
    let file = try #require(await served.lookup("b.bin", in: directory).entry)
    #expect(file.values.st_size == 3)
    #expect(await served.lookup("c.bin", in: directory).errno == ENOENT)
    #expect(served.server.targets.filter { $0 == "/list/" }.count == 1)
  }

  @Test("Names that are missing or denied fail with the error that says so")
  func errors() async throws {
    #expect(await served.lookup("none").errno == ENOENT)
    #expect(await served.lookup("missing").errno == ENOENT)
    #expect(await served.lookup("denied").errno == EACCES)
    let directory = try await served.inode("dir")
    let file = try await served.inode("a.bin", in: directory)
    #expect(await served.lookup("x", in: file).errno == ENOTDIR)
  }

  @Test("An inode that the kernel has forgotten is stale; the root never is")
  func forgotten() async throws {
    let directory = try await served.inode("dir")
    let file = try await served.inode("a.bin", in: directory)
    _ = try await served.inode("a.bin", in: directory)
    served.fileSystem.forget(file, count: 1)
    #expect(await served.attributes(file).attributes != nil)
    served.fileSystem.forget(file, count: 1)
    #expect(await served.attributes(file).errno == ESTALE)
    #expect(await served.open(file).errno == ESTALE)
    #expect(await served.attributes(ServedFileSystem.root).attributes != nil)
  }

  @Test("A look-up that waits for its server fails when the mount ends")
  func abandoned() async throws {
    let served = served
    async let answer = served.lookup("silent")
    try await served.waitForRequest("silent")
    served.fileSystem.abandon()
    #expect(await answer.errno == EIO)
  }

  @Test("A driver can take a parked reply and interrupt the request")
  func interrupted() async throws {
    let fileSystem = served.fileSystem
    let interrupt: @Sendable (ParkedReply<TestReply>) -> Void = { $0.take()?.error(EINTR) }
    let answer = await TestReply.to(whenParked: interrupt) {
      fileSystem.lookup(ServedFileSystem.root, "silent", $0)
    }
    #expect(answer.errno == EINTR)
  }

  @Test("Extended attributes tell a file's source, and nothing of other names")
  func extendedAttributes() async throws {
    let fileSystem = served.fileSystem
    let file = try await served.inode("a.bin", in: try await served.inode("dir"))
    func value(_ name: String) async -> Answer {
      await TestReply.to { fileSystem.extendedAttribute(name, of: file, room: 100, $0) }
    }
    #expect(await value("user.httpfs.url").text == served.server.url("/dir/a.bin"))
    #expect(await value("user.httpfs.etag").text == "\"v1\"")
    #expect(await value("user.httpfs.none").errno == ENODATA)
    #expect(await value("security.selinux").errno == EOPNOTSUPP)
    let names = await TestReply.to { fileSystem.extendedAttributeNames(of: file, room: 0, $0) }
    #expect(names.text?.split(separator: "\0").contains("user.httpfs.cached_bytes") == true)
  }

  @Test("statfs counts the files that were looked up")
  func statistics() async throws {
    let fileSystem = served.fileSystem
    _ = try await served.inode("a.bin", in: try await served.inode("dir"))
    let answer = await TestReply.to { fileSystem.statistics($0) }
    guard case .statistics(let values) = answer else {
      Issue.record("no statistics")
      return
    }
    #expect(values.f_blocks == 5000 / 4096)
    #expect(values.f_namemax == 255)
  }
}
