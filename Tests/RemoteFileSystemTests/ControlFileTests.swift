import Glibc
import RemoteFileSystem
import RemoteFiles
import Testing

/// `.status`, `.metrics` and `.control`.
@Suite(.timeLimit(.minutes(1))) struct ControlFileTests {
  private let served: ServedFileSystem

  init() throws {
    served = try ServedFileSystem(["a.bin": .bytes([1, 2, 3]), "b.bin": .bytes([4])])
  }

  @Test("The state names the mount and its files, in each form")
  func state() async throws {
    _ = try await served.inode("a.bin")
    let json = try await served.contents(".status.json")
    #expect(json.contains("\"/mnt/files\""))
    #expect(json.contains("\"a.bin\"") && json.contains("\"b.bin\""))
    #expect(try await served.contents(".status").contains("a.bin"))
    #expect(try await served.contents(".metrics").contains("# TYPE"))
    #expect(served.server.targets == ["/a.bin"])
  }

  @Test("Control files are read past the kernel's cache, and only .control can be written")
  func modes() async throws {
    for name in [".status", ".status.json", ".metrics", ".control"] {
      let entry = try #require(await served.lookup(name).entry)
      let inode = entry.inode.rawValue
      let isControl = name == ".control"
      #expect(entry.values.st_mode == S_IFREG | (isControl ? 0o600 : 0o444))
      #expect(await served.attributes(inode).attributes?.timeout == 0)
      let answer = await served.open(inode)
      guard case .opened(let handle, .direct) = answer else {
        Issue.record("\(name) opened as \(answer)")
        continue
      }
      served.fileSystem.release(inode, handle)
      #expect(await served.open(inode, flags: O_WRONLY).errno == (isControl ? nil : EROFS))
    }
  }

  @Test("Commands are accepted or refused as a whole")
  func commands() async throws {
    #expect(try await served.command("connections 3\n").written == 14)
    #expect(served.environment.connections == 3)
    #expect(try await served.command("connections 5\npin none\n").errno == ENOENT)
    #expect(try await served.command("nonsense\n").errno == EINVAL)
    #expect(served.environment.connections == 3)
    #expect(try await served.command("pin a.bin\n").written == 10)
    #expect(try await served.command("evict a.bin\n").errno == EPERM)
    #expect(try await served.contents(".control").contains("prefetch"))
  }

  @Test("A shell may truncate .control; no other attribute changes")
  func setAttributes() async throws {
    let fileSystem = served.fileSystem
    func set(_ inode: UInt64, changesAccess: Bool) async -> Answer {
      await TestReply.to {
        fileSystem.setAttributes(inode, changesAccess: changesAccess, $0)
      }
    }
    let control = try await served.inode(".control")
    #expect(await set(control, changesAccess: false).attributes != nil)
    #expect(await set(control, changesAccess: true).errno == EROFS)
    #expect(await set(try await served.inode("a.bin"), changesAccess: false).errno == EROFS)
  }

  @Test("'refresh' has the list read again, and the new list replaces the files")
  func reload() async throws {
    let served = served
    let old = try await served.inode("a.bin")
    let files = try ServedFileSystem.files(["b.bin"], of: served.server)
    let (reloads, reload) = AsyncStream<Void>.makeStream()
    served.fileSystem.onReload(hasList: true) { [weak served] in
      served?.fileSystem.replaceTree(sources: MountSources(files: files))
      reload.finish()
      return nil
    }
    #expect(try await served.command("refresh\n").written == 8)
    for await _ in reloads {}
    #expect(await served.lookup("a.bin").errno == ENOENT)
    #expect(await served.lookup("b.bin").entry != nil)
    // The kernel may still use earlier look-ups.
    #expect(await served.attributes(old).attributes != nil)
  }
}
