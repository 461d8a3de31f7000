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
    for path in ["f1", "f3"] {
      guard case .file(let file) = walk.next() else {
        Issue.record("no file")
        return
      }
      #expect(file.source.path == path)
    }
    #expect(looked.indices.withLock { $0 } == [0, 1, 2, 3])
  }

  /// The indices that were looked up.
  private final class Looked: Sendable {
    let indices = Mutex<[Int]>([])
  }

  @Test("A walk ends behind its last name")
  func end() {
    let walk = FileWalk(count: 3) { _ in nil }
    for _ in 0..<2 {
      guard case .ended = walk.next() else {
        Issue.record("the walk goes on")
        return
      }
    }
  }

  @Test("A step skips a few names only, because it may run on the network thread")
  func skip() {
    let looked = Looked()
    let walk = FileWalk(count: 100_000) { index in
      looked.indices.withLock { $0.append(index) }
      return nil
    }
    guard case .skipped = walk.next() else {
      Issue.record("the step does not end")
      return
    }
    #expect(looked.indices.withLock { $0 } == Array(0..<64))
    guard case .skipped = walk.next() else {
      Issue.record("the next step does not end")
      return
    }
    #expect(looked.indices.withLock { $0 } == Array(0..<128))
  }
}
