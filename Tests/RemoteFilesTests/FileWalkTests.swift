import Synchronization
import Testing

@testable import RemoteFiles

/// The files that a walk of a directory looks up.
@Suite struct FileWalkTests {
  @Test("Files come into being as they are asked about; those of no interest are passed over")
  func order() throws {
    let disk = try VersionOnDisk(length: 100)
    let looked = Looked()
    let walk = FileWalk(count: 100_000) { [environment = disk.environment] index in
      looked.indices.withLock { $0.append(index) }
      guard index % 2 == 1 else { return nil }
      return VersionOnDisk.makeVersion("f\(index)", length: 1, in: environment).remoteFile
    }
    #expect(looked.indices.withLock { $0.isEmpty })
    #expect(walk.next()?.source.path == "f1")
    #expect(walk.next()?.source.path == "f3")
    #expect(looked.indices.withLock { $0 } == [0, 1, 2, 3])
  }

  /// The indices that were looked up.
  private final class Looked: Sendable {
    let indices = Mutex<[Int]>([])
  }

  @Test("A walk ends behind its last name")
  func end() {
    let walk = FileWalk(count: 3) { _ in nil }
    #expect(walk.next() === nil)
    #expect(walk.next() === nil)
  }
}
