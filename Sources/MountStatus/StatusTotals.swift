internal import TextFormat

/// The sums over all files of a mount.
package struct StatusTotals: Sendable, Hashable, Decodable {
  /// How many files there are.
  package var files = 0

  /// How many of them are wholly in the cache.
  package var completeFiles = 0

  /// The bytes of all files whose length is known.
  package var length: Int64 = 0

  package var cachedBytes: Int64 = 0
  package var fetchedBytes: Int64 = 0
  package var damagedBytes: Int64 = 0
  package var speedBytesPerSecond: Int64 = 0
  package var connections = 0
  package var requests = 0
  package var retries = 0

  /// How many reads wait.
  package var waitingReads = 0

  package init() {}

  /// Adds the figures of a file.
  ///
  /// Sums saturate because servers may report any length.
  package mutating func add(_ file: FileStatus) {
    files += 1
    if file.state == .complete { completeFiles += 1 }
    length = length.saturatingAdd(file.length ?? 0)
    cachedBytes = cachedBytes.saturatingAdd(file.cachedBytes)
    fetchedBytes = fetchedBytes.saturatingAdd(file.fetchedBytes)
    damagedBytes = damagedBytes.saturatingAdd(file.damagedBytes)
    speedBytesPerSecond = speedBytesPerSecond.saturatingAdd(file.speedBytesPerSecond)
    connections = connections.saturatingAdd(file.connections)
    requests = requests.saturatingAdd(file.requests)
    retries = retries.saturatingAdd(file.retries)
    waitingReads += file.waitingReads.count
  }

  enum CodingKeys: String, CodingKey {
    case files
    case completeFiles = "complete_files"
    case length
    case cachedBytes = "cached_bytes"
    case fetchedBytes = "fetched_bytes"
    case damagedBytes = "damaged_bytes"
    case speedBytesPerSecond = "speed_bytes_per_second"
    case connections, requests, retries
    case waitingReads = "waiting_reads"
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(CodingKeys.files, files)
      writer.member(CodingKeys.completeFiles, completeFiles)
      writer.member(CodingKeys.length, length)
      writer.member(CodingKeys.cachedBytes, cachedBytes)
      writer.member(CodingKeys.fetchedBytes, fetchedBytes)
      writer.member(CodingKeys.damagedBytes, damagedBytes)
      writer.member(CodingKeys.speedBytesPerSecond, speedBytesPerSecond)
      writer.member(CodingKeys.connections, connections)
      writer.member(CodingKeys.requests, requests)
      writer.member(CodingKeys.retries, retries)
      writer.member(CodingKeys.waitingReads, waitingReads)
    }
  }
}

extension FixedWidthInteger {
  fileprivate func saturatingAdd(_ other: Self) -> Self {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }
}
