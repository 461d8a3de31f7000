import Glibc
import RemoteFileSystem
import Testing

/// Opens, reads and releases of files.
@Suite(.timeLimit(.minutes(1))) struct OpenFileTests {
  private static let bytes = ServedFileSystem.bytes(200_000)
  private let served: ServedFileSystem

  init() throws {
    served = try ServedFileSystem([
      "small": .bytes(Array(Self.bytes.prefix(1000))), "large": .bytes(Self.bytes),
    ])
  }

  @Test("A small file is read with one request, at any offset")
  func small() async throws {
    let inode = try await served.inode("small")
    let answer = await served.open(inode)
    guard case .opened(let handle, .cached(keepsPages: true)) = answer else {
      Issue.record("opened as \(answer)")
      return
    }
    #expect(await served.read(handle, at: 0, 4096).bytes == Array(Self.bytes[..<1000]))
    #expect(await served.read(handle, at: 990, 100).bytes == Array(Self.bytes[990..<1000]))
    #expect(await served.read(handle, at: 1000, 100).bytes == [])
    #expect(await served.read(handle, at: -1, 100).errno == EINVAL)
    served.fileSystem.release(inode, handle)
    #expect(served.server.targets == ["/small"])
  }

  @Test("A read of absent bytes is parked until the server has sent them")
  func absent() async throws {
    let inode = try await served.inode("large")
    let handle = try #require(await served.open(inode).handle)
    let offset = 150_000
    #expect(
      await served.read(handle, at: Int64(offset), 4096).bytes
        == Array(Self.bytes[offset..<offset + 4096]))
    served.fileSystem.release(inode, handle)
  }

  @Test("Files cannot be opened to write, and not be written")
  func readOnly() async throws {
    let inode = try await served.inode("small")
    for flags in [O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC] {
      #expect(await served.open(inode, flags: flags).errno == EROFS)
    }
    let handle = try #require(await served.open(inode).handle)
    #expect(await served.write("x", to: handle).errno == EROFS)
    served.fileSystem.release(inode, handle)
  }

  @Test("A file is in use until its release, and not after an open that the kernel rejects")
  func inUse() async throws {
    let inode = try await served.inode("small")
    let handle = try #require(await served.open(inode).handle)
    #expect(try await served.command("evict small\n").errno == EBUSY)
    served.fileSystem.release(inode, handle)
    #expect(try await served.command("evict small\n").written == 12)
    let other = try await served.inode("large")
    #expect(await served.open(other, acceptsOpens: false).handle != nil)
    // The file system releases the handle after it has learned that the kernel rejects it.
    let deadline = ContinuousClock.now + .seconds(20)
    while try await served.command("evict large\n").errno == EBUSY {
      try #require(.now < deadline, "still in use")
      try await Task.sleep(for: .milliseconds(2))
    }
  }
}
