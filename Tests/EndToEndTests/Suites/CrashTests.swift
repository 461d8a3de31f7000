import Foundation
import Glibc
import Testing

/// A crash costs little, and a wrong record is never trusted.
extension RealMounts {
  @Suite struct Crashes {
    @Test(arguments: [40, 100, 170])
    func `kill -9 loses at most 16 MiB that had arrived, of many connections`(
      killAtMebibytes: Int64
    ) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      // The rate applies to each connection, so each file has many connections.
      let files = (0..<3).map {
        RemoteTestFile(name: "k\($0).bin", seed: UInt64(41 + $0), byteCount: 64 << 20)
      }
      let length: Int64 = files.reduce(0) { $0 + $1.byteCount }
      let urls = files.map { $0.url(origin, query: "rate=16777216") }
      let first = try sandbox.mount(urls: urls)
      let readers = try files.map { try sandbox.start(["sha256sum", first.path($0.name)]) }
      var unstored: Int64 = 0
      let reached = try Deadline(after: .seconds(60)).wait(every: .milliseconds(20)) {
        let status = try first.status().files
        let cached: Int64 = status.reduce(0) { $0 + $1.cachedByteCount }
        unstored = status.reduce(0) { $0 + $1.fetchedByteCount } - cached
        return cached >= killAtMebibytes << 20
      }
      #expect(reached)
      // While the disk hangs, bytes stay in memory. Buffers alone hold less than 12 MiB.
      let isDiskSlow = unstored > 12 << 20
      // The kernel owns the bytes in sockets: stop both sides so that neither adds bytes during the
      // count.
      origin.signal(SIGSTOP)
      first.process.signal(SIGSTOP)
      let unread = try SocketQueues.unreadByteCount(port: origin.port)
      try first.crash()
      origin.signal(SIGCONT)
      for reader in readers { reader.kill() }
      let requests = try origin.takeRequests()
      let connectionCount = requests.peakConcurrency
      #expect(connectionCount >= 8)
      let second = try sandbox.mount(urls: urls)
      // A slow disk may take longer to confirm the bytes than an open waits for it.
      for file in files { #expect(access(second.path(file.name), R_OK) == 0) }
      let areFound = try Deadline(after: .seconds(60)).wait {
        try second.status().files.count { $0.cachedByteCount > 0 } == files.count
      }
      #expect(areFound)
      for file in files { #expect(try second.sha256(file.name) == file.digest) }
      try second.unmount()
      let arrived = requests.distinctBodyByteCount - unread
      let repeated = try arrived + origin.requests().distinctBodyByteCount - length
      #expect(
        repeated <= (isDiskSlow ? 48 : 16) << 20,
        "\(repeated) bytes twice of \(connectionCount) connections; \(unread) more lay in sockets, \(unstored) in memory"
      )
    }

    /// Ways to damage the record of one file beside that of another file.
    enum Damage: String, CaseIterable, CustomTestStringConvertible {
      case truncated
      case emptied
      case garbage
      case anotherFile
      case dataShortened

      var testDescription: String { rawValue }
    }

    @Test(arguments: Damage.allCases)
    func `a damaged record is not believed`(damage: Damage) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 8 << 20
      let urls = [
        origin.url("a.bin", length: length, seed: 42),
        origin.url("b.bin", length: length, seed: 43),
      ]
      let digests = [42, 43].map { Digest.ofContent(seed: UInt64($0), byteCount: length) }
      let first = try sandbox.mount(urls: urls)
      #expect(try first.sha256("a.bin") == digests[0])
      #expect(try first.sha256("b.bin") == digests[1])
      try first.unmount()

      let records = FileStatus.files(named: "record", below: first.cacheDirectory)
      try #require(records.count == 2, "records: \(records)")
      try spoil(records, damage)

      let second = try sandbox.mount(urls: urls)
      #expect(try second.sha256("a.bin") == digests[0])
      #expect(try second.sha256("b.bin") == digests[1])
      #expect(try second.unmount() == .exited(0))
    }

    private func spoil(_ records: [String], _ damage: Damage) throws {
      switch damage {
      case .truncated:
        for record in records {
          let length = try #require(FileStatus.byteCount(of: record))
          try shell("truncate -s \(length * 2 / 3) \(quoted(record))")
        }
      case .emptied:
        for record in records { try shell("truncate -s 0 \(quoted(record))") }
      case .garbage:
        for record in records {
          let length = try #require(FileStatus.byteCount(of: record))
          try shell("head -c \(length) /dev/urandom > \(quoted(record))")
        }
      case .anotherFile:
        // Copy the whole entry of the other URL, data and record: the record must name its owner.
        let directories = records.map { ($0 as NSString).deletingLastPathComponent }
        try shell(
          "rm -rf \(quoted(directories[1]))/*; cp \(quoted(directories[0]))/* \(quoted(directories[1]))/"
        )
      case .dataShortened:
        for record in records {
          let directory = (record as NSString).deletingLastPathComponent
          try shell("truncate -s 3M \(quoted(directory))/data-*")
        }
      }
    }
  }
}
