import Glibc
import RemoteFileSystem
import Testing

/// The names of directories.
@Suite(.timeLimit(.minutes(1))) struct DirectoryTests {
  private let served: ServedFileSystem

  init() throws {
    served = try ServedFileSystem(
      [
        "a.bin": .bytes([1]), "dir/b.bin": .bytes([2]),
        "list/": .page("<a href=\"c.bin\">c.bin</a> <a href=\"sub/\">sub/</a>"),
        "broken/": .status(403),
      ], listings: ["list/", "broken/"])
  }

  private func open(_ inode: UInt64) async -> Answer {
    let fileSystem = served.fileSystem
    return await TestReply.to { fileSystem.openDirectory(inode, $0) }
  }

  private func names(_ handle: OpenHandle, from offset: Int64 = 0) async -> Answer {
    let fileSystem = served.fileSystem
    return await TestReply.to {
      fileSystem.readDirectory(handle, offset: offset, byteCount: 4096, $0)
    }
  }

  @Test("The root has the names of the list, and not those of the control files")
  func root() async throws {
    let handle = try #require(await open(ServedFileSystem.root).handle)
    let all = try #require(await names(handle).items)
    #expect(all.prefix(2) == [".", ".."])
    #expect(all.dropFirst(2).sorted() == ["a.bin", "broken", "dir", "list"])
    #expect(await names(handle, from: 2).items == Array(all.dropFirst(2)))
    #expect(await names(handle, from: 6).items == [])
    #expect(await names(handle, from: 1000).items == [])
    #expect(await names(handle, from: -1).errno == EBADF)
    #expect(served.server.targets.isEmpty)
  }

  @Test("A directory with a listing has the names of its page")
  func listing() async throws {
    let handle = try #require(await open(try await served.inode("list")).handle)
    #expect(await names(handle).items == [".", "..", "c.bin", "sub"])
  }

  @Test("A listing that the server denies, and what is no directory, cannot be opened")
  func errors() async throws {
    #expect(await open(try await served.inode("broken")).errno == EACCES)
    let file = try await served.inode("a.bin")
    #expect(await open(file).errno == ENOENT)
    let handle = try #require(await served.open(file).handle)
    #expect(await names(handle).errno == EBADF)
    served.fileSystem.release(file, handle)
    let directory = try #require(await open(ServedFileSystem.root).handle)
    #expect(await served.read(directory, at: 0, 10).errno == EISDIR)
  }
}
