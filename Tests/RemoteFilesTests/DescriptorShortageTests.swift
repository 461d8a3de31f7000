import Dispatch
import Glibc
import HTTPTransferCore
import Synchronization
import Testing

@testable import RemoteFiles

/// The behaviour of a version while the process has no free descriptors: only new opens fail.
///
/// Tests that use up the descriptors run in a separate process.
@Suite struct DescriptorShortageTests {
  /// Keeps the descriptors of this process in use until ``free()``.
  private final class Shortage {
    private var taken: [CInt] = []

    /// Takes all free descriptors.
    init() {
      // libdispatch ends the process if it cannot open the descriptors for its first timer.
      let hasTimer = DispatchSemaphore(value: 0)
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { hasTimer.signal() }
      hasTimer.wait()
      var limit = rlimit(rlim_cur: 256, rlim_max: 256)
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      while case let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC), descriptor >= 0 {
        taken.append(descriptor)
      }
    }

    /// Frees one descriptor: enough for memory, but not for a cache entry.
    ///
    /// If it is the lowest one, many more seem to be free.
    func freeOne(isLowest: Bool = false) {
      close(isLowest ? taken.removeFirst() : taken.removeLast())
    }

    func free() {
      for descriptor in taken { close(descriptor) }
      taken = []
    }
  }

  /// The result of a read.
  private final class KeptReply: ReadReply {
    private let state = Mutex<(byteCount: Int?, error: FileError?)>((nil, nil))
    var byteCount: Int? { state.withLock { $0.byteCount } }
    var error: FileError? { state.withLock { $0.error } }

    func succeed(_ bytes: PresentBytes) { state.withLock { $0.byteCount = bytes.byteCount } }
    func fail(_ error: FileError) { state.withLock { $0.error = error } }
  }

  /// Waits until another thread fulfils a condition; false after 20 s.
  private static func waitUntil(_ condition: () -> Bool) -> Bool {
    let deadline = ContinuousClock.now + .seconds(20)
    while !condition() {
      guard ContinuousClock.now < deadline else { return false }
      usleep(2000)
    }
    return true
  }

  /// Adds a request for all of `version`, without sending it.
  private static func request(_ version: RemoteVersion) -> SegmentID {
    version.state.withLock {
      $0.version.awaitLocation(SegmentID(rawValue: 0))
      return $0.version.addSegment(range: 0..<1000, isWhole: true, now: .now).id
    }
  }

  @Test("A request that lacked descriptors fails nobody who has opened the file since")
  func openedSince() throws {
    let disk = try VersionOnDisk(length: 1000)
    let version = disk.version
    let id = Self.request(version)
    VersionHandles(owner: version).retain(needsBacking: false) { _ in }
    let reply = KeptReply()
    VersionReads(owner: version).wait(for: 0..<100, reply: reply)
    RequestEnds(owner: version).failed(id, FileError(.tooManyFiles, "test"))
    #expect(reply.error == nil)
    #expect(version.snapshot().segments.isEmpty)
    try version.storeBytes(0..<1000)
    #expect(Self.waitUntil { reply.byteCount == 100 })
    VersionHandles(owner: version).release()
  }

  @Test("Whoever prefetches a file that nobody has open is told of the shortage")
  func prefetched() throws {
    let disk = try VersionOnDisk(length: 1000)
    let id = Self.request(disk.version)
    RequestEnds(owner: disk.version).failed(id, FileError(.tooManyFiles, "test"))
    #expect(disk.version.takePrefetchFailure()?.code == .tooManyFiles)
  }

  @Test("Memory serves readers whose entry cannot be opened, and the cache stays in use")
  func memory() async {
    await #expect(processExitsWith: .success) {
      let disk = try VersionOnDisk(length: 1000)
      let version = disk.version
      VersionHandles(owner: version).retain(needsBacking: false) { _ in }
      let shortage = Shortage()
      shortage.freeOne()
      try version.storeBytes(0..<500)
      #expect(version.state.withLock { $0.spill?.extents.extents } == [0..<500])
      #expect(disk.environment.health.mayStore())
      #expect(disk.environment.health.report.failureCount == 0)
      #expect(version.file.statistics.lastError?.contains("too many open files") == true)
      shortage.free()
      try version.storeBytes(500..<1000)
      #expect(version.state.withLock { $0.spill?.extents.extents } == [0..<500])
      #expect(version.presentExtents == [0..<1000])
      VersionHandles(owner: version).release()
    }
  }

  @Test("What memory holds is not fetched again for a cache that cannot be opened yet")
  func kept() async {
    await #expect(processExitsWith: .success) {
      let disk = try VersionOnDisk(length: 1000)
      let version = disk.version
      VersionHandles(owner: version).retain(needsBacking: false) { _ in }
      let shortage = Shortage()
      shortage.freeOne()
      try version.storeBytes(0..<500)
      #expect(!version.isKeptFromCache())
      #expect(version.presentExtents == [0..<500])
      shortage.free()
      #expect(!version.isKeptFromCache())
      #expect(version.presentExtents == [])
      VersionHandles(owner: version).release()
    }
  }

  @Test("Reads wait where there is no descriptor for memory either, and no server is blamed")
  func waiting() async {
    await #expect(processExitsWith: .success) {
      let disk = try VersionOnDisk(length: 1000)
      let version = disk.version
      let id = DescriptorShortageTests.request(version)
      VersionHandles(owner: version).retain(needsBacking: false) { _ in }
      let reply = KeptReply()
      VersionReads(owner: version).wait(for: 0..<100, reply: reply)
      let shortage = Shortage()
      let error = try #require(throws: FileError.self) {
        try version.storeBytes(0..<1000, of: id)
      }
      RequestEnds(owner: version).failed(id, error)
      #expect(!error.isOfServer)
      #expect(reply.error == nil)
      #expect(disk.environment.health.mayStore())
      let backoff = version.snapshot().requests.backoff
      #expect(backoff.isPending(now: .now))
      #expect(backoff.fruitlessCount == 0)
      shortage.free()
      try version.storeBytes(0..<1000)
      #expect(DescriptorShortageTests.waitUntil { reply.byteCount == 100 })
      #expect(version.state.withLock { $0.spill == nil })
      VersionHandles(owner: version).release()
    }
  }

  @Test("Memory keeps nothing for a file that nobody has open")
  func unread() async {
    await #expect(processExitsWith: .success) {
      let disk = try VersionOnDisk(length: 1000)
      let shortage = Shortage()
      shortage.freeOne(isLowest: true)
      let error = #expect(throws: FileError.self) { try disk.version.storeBytes(0..<1000) }
      #expect(error?.code == .tooManyFiles)
      #expect(disk.version.state.withLock { $0.spill == nil })
      #expect(disk.environment.health.mayStore())
      shortage.free()
    }
  }
}
