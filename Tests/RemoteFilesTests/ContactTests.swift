import HTTPTransfer
import Synchronization
import Testing

@testable import RemoteFiles

/// Who waits for an answer to the one question that a file has to its server.
@Suite struct ContactTests {
  @Test("Who joins a question as its time ends is not failed with those who came before")
  func joinsLate() throws {
    let disk = try VersionOnDisk(length: 1000)
    let file = disk.version.file
    let answers = Mutex(0)
    let id = ContactID(rawValue: 1)
    let now = ContinuousClock.now
    let waiting = RemoteFile.Waiting(
      answer: { _ in answers.withLock { $0 += 1 } }, deadline: now + .seconds(60))
    file.state.withLock {
      $0.contact = RemoteFile.Contact(id: id, waiters: [], byteCount: 1, deadline: now)
      // After somebody has seen that its time is up.
      $0.contact?.join(waiting, hasCached: false)
    }
    let failure = FileError(.timedOut, "no answer from the server")
    #expect(!file.endContact(id, .failure(failure), ifExpiredBy: now))
    #expect(answers.withLock { $0 } == 0)
    #expect(file.endContact(id, .failure(failure), ifExpiredBy: now + .seconds(61)))
    #expect(answers.withLock { $0 } == 1)
    #expect(!file.endContact(id, .failure(failure), ifExpiredBy: nil))
  }

  @Test("A file gives its entry to another one only while nobody uses it or asks about it")
  func givesWay() throws {
    let disk = try VersionOnDisk(length: 1000)
    let version = disk.version
    let file = version.file
    file.state.withLock { $0.setFirst(version) }
    version.state.withLock { $0.openCount = 1 }
    #expect(!file.giveWay())
    version.state.withLock { $0.openCount = 0 }
    file.state.withLock {
      $0.contact = RemoteFile.Contact(
        id: ContactID(rawValue: 1), waiters: [], byteCount: 1, deadline: .now + .seconds(60))
    }
    #expect(!file.giveWay())
    file.state.withLock {
      $0.contact = nil
      $0.look = .late
    }
    #expect(!file.giveWay())
    #expect(!version.snapshot().isSuperseded)
    file.state.withLock { $0.look = .done }
    #expect(file.giveWay())
    #expect(version.snapshot().isSuperseded)
    #expect(file.current == nil)
  }
}
