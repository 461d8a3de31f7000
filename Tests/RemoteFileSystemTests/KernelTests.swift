import RemoteFileSystem
import RemoteFiles
import Synchronization
import Testing

/// The requests of the file system to the kernel when files are opened and released.
@Suite(.timeLimit(.minutes(1))) struct KernelTests {
  /// A kernel that reads backing files directly, or refuses to.
  private final class FakeKernel: Kernel {
    struct State {
      var preparedCount = 0
      var registeredCount = 0
      var closed: [CInt] = []
    }

    private let id: CInt?
    private let record = Mutex(State())

    init(id: CInt?) { self.id = id }

    var state: State { record.withLock { $0 } }

    func prepareForOpen() { record.withLock { $0.preparedCount += 1 } }

    func openBacking(_ file: BackingFile) -> CInt? {
      record.withLock { $0.registeredCount += 1 }
      return id
    }

    func closeBacking(_ id: CInt) { record.withLock { $0.closed.append(id) } }

    func dropPages(of inode: InodeNumber) {}
  }

  private let served: ServedFileSystem

  init() throws {
    served = try ServedFileSystem(["a.bin": .bytes(ServedFileSystem.bytes(1000))])
  }

  /// Opens `inode` until the file system has offered its backing file to `kernel`.
  ///
  /// The cache must have committed that file before.
  private func openCommitted(_ inode: UInt64, _ kernel: FakeKernel) async throws -> Answer {
    let deadline = ContinuousClock.now + .seconds(30)
    while true {
      let answer = await served.open(inode)
      if kernel.state.registeredCount > 0 { return answer }
      served.fileSystem.release(inode, try #require(answer.handle))
      try #require(.now < deadline, "the file is not committed")
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  @Test("All handles of an inode share one backing file, until the last is released")
  func backing() async throws {
    let kernel = FakeKernel(id: 7)
    served.fileSystem.attach(kernel)
    let inode = try await served.inode("a.bin")
    guard
      case .opened(let first, .passthrough(backingID: 7)) = try await openCommitted(inode, kernel),
      case .opened(let second, .passthrough(backingID: 7)) = await served.open(inode)
    else {
      Issue.record("not passed through")
      return
    }
    #expect(kernel.state.registeredCount == 1)
    served.fileSystem.release(inode, first)
    #expect(kernel.state.closed.isEmpty)
    served.fileSystem.release(inode, second)
    #expect(kernel.state.closed == [7])
    #expect(kernel.state.preparedCount >= 2)
  }

  @Test("A file whose backing file the kernel refuses is read through its pages")
  func refused() async throws {
    let kernel = FakeKernel(id: nil)
    served.fileSystem.attach(kernel)
    let inode = try await served.inode("a.bin")
    let answer = try await openCommitted(inode, kernel)
    guard case .opened(let handle, .cached(keepsPages: true)) = answer else {
      Issue.record("opened as \(answer)")
      return
    }
    #expect(await served.read(handle, at: 0, 1000).bytes == ServedFileSystem.bytes(1000))
    served.fileSystem.release(inode, handle)
    #expect(kernel.state.closed.isEmpty)
  }
}
