import ExtentRecord
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import MountStatus
import SeededRandom
import SourceList

/// One kind of work of the pure modules.
struct Workload: Sendable {
  let name: String
  /// Does the work for a number of items.
  let run: @Sendable (Int) throws -> UInt64
}

/// All kinds of work.
///
/// The cost of each should grow in proportion to the number of items, apart from a logarithm.
let workloads: [Workload] = [
  Workload(name: "extents-in-order", run: insertInOrder),
  Workload(name: "extents-scattered", run: insertScattered),
  Workload(name: "extents-holes", run: findHoles),
  Workload(name: "wrong-pieces", run: settleWrongPieces),
  Workload(name: "streams", run: recordReads),
  Workload(name: "plans", run: makePlans),
  Workload(name: "plan-demands", run: planManyDemands),
  Workload(name: "record-encode", run: encodeRecords),
  Workload(name: "record-decode", run: decodeRecords),
  Workload(name: "list", run: parseList),
  Workload(name: "list-tree", run: parseListAsTree),
  Workload(name: "heads", run: parseHeads),
  Workload(name: "status-text", run: describeStatus),
  Workload(name: "status-json", run: encodeStatus),
]

private let page = FetchPlanner.page

// MARK: Extents

/// A lying mirror brings every piece wrong, and another server brings them right.
private func settleWrongPieces(_ count: Int) -> UInt64 {
  let length = Int64(count) * page
  let digests = [[UInt8]](repeating: [UInt8](repeating: 0, count: 16), count: count)
  guard
    let hashes = PieceHashes(algorithm: .md5, pieceByteCount: page, digests: digests),
    var table = PieceTable(hashes: hashes, length: length)
  else { return 0 }
  var digest: UInt64 = 0
  var extents = ExtentSet()
  func bring(_ range: ByteRange, from server: Int, by request: Int) {
    let carrier = PieceTable.Carrier.request(request)
    for check in table.note(range, from: server, by: carrier, extents: extents).checks {
      if table.settle(check, matches: server == 1, trusted: [0, 1]) == .verified {
        extents.insert(range)
      }
    }
  }
  for piece in 0..<Int64(count) { bring(piece * page..<(piece + 1) * page, from: 0, by: 1) }
  while let suspect = table.suspects.first(where: { _ in true }) {
    bring(table.restart(piece: suspect, by: suspect + 2), from: 1, by: suspect + 2)
    digest &+= table.isLost(0..<length) || table.isSuspect(piece: suspect) ? 1 : 2
  }
  return digest &+ UInt64(extents.byteCount)
}

/// The work of a sequential download.
private func insertInOrder(_ count: Int) -> UInt64 {
  var extents = ExtentSet()
  for index in 0..<Int64(count) { extents.insert(index * 65_536..<(index + 1) * 65_536) }
  return UInt64(extents.byteCount)
}

/// The work of random reads: every other page, in a random order.
private func insertScattered(_ count: Int) -> UInt64 {
  var extents = ExtentSet()
  for range in scatteredPages(count) { extents.insert(range) }
  return UInt64(extents.extents.count)
}

private func scatteredPages(_ count: Int) -> [ByteRange] {
  var random = SeededGenerator(seed: 1)
  return (0..<Int64(count)).shuffled(using: &random).map { 2 * $0 * page..<(2 * $0 + 1) * page }
}

/// Look-ups among a thousand extents.
private func findHoles(_ count: Int) -> UInt64 {
  let extents = ExtentSet(scatteredPages(1000))
  var random = SeededGenerator(seed: 2)
  var sum: UInt64 = 0
  for _ in 0..<count {
    let start = Int64.random(in: 0..<2000 * page, using: &random)
    let hole = extents.firstHole(in: start..<start + 4 * page)
    sum &+= UInt64(hole?.lowerBound ?? 0) &+ UInt64(extents.presentEnd(from: start))
  }
  return sum
}

// MARK: Planning

/// Sequential readers of one file, interleaved, with a random read now and then.
private func recordReads(_ count: Int) -> UInt64 {
  var streams = SequentialReaders()
  var random = SeededGenerator(seed: 3)
  var cursors = (0..<6).map { Int64($0) << 32 }
  var sum: UInt64 = 0
  for index in 0..<count {
    let reader = index % cursors.count
    let start = index % 16 == 15 ? Int64.random(in: 0..<1 << 40, using: &random) : cursors[reader]
    if start == cursors[reader] { cursors[reader] += 131_072 }
    sum &+= UInt64(streams.note(start..<start + 131_072).window)
  }
  return sum
}

private let limits = FetchPlanner.Limits(
  connections: 16, demandConnections: 32, roundTrip: 0.05, connectionRate: 10e6)

/// Plans while a file is read in order over 16 connections.
private func makePlans(_ count: Int) -> UInt64 {
  let length = Int64(1) << 40
  var sum: UInt64 = 0
  for index in 0..<Int64(count) {
    let cursor = index << 20
    let flights = (0..<15).map { number in
      let start = cursor + Int64(number) << 22
      return FetchPlanner.Flight(
        id: number, start: start, position: start + 65_536, end: start + 4 << 20, rate: 10e6)
    }
    let plan = FetchPlanner().plan(
      length: length, extents: ExtentSet([0..<cursor]), flights: flights,
      demands: [cursor..<cursor + 131_072],
      streams: [FetchPlanner.Reader(cursor: cursor, window: 64 << 20)], limits: limits)
    sum &+= UInt64(plan.starts.count)
  }
  return sum
}

/// One plan for many reads that wait at random places.
private func planManyDemands(_ count: Int) -> UInt64 {
  let demands = scatteredPages(count).sorted { $0.lowerBound < $1.lowerBound }
  let plan = FetchPlanner().plan(
    length: 1 << 40, extents: ExtentSet(), flights: [], demands: demands, streams: [],
    limits: limits)
  return UInt64(plan.starts.count)
}

// MARK: Records

private func encodeRecords(_ count: Int) -> UInt64 {
  var sum: UInt64 = 0
  for sequence in 1..<UInt64(count) + 1 {
    let record = LogRecord.extent(
      offset: Int64(sequence) << 16, byteCount: 1 << 16, contentHash: sequence)
    sum &+= record.encoded(sequence: sequence, salt: 1).0
  }
  return sum
}

/// The work of reading a file's log at the start of a mount.
private func decodeRecords(_ count: Int) -> UInt64 {
  var extents = ExtentSet()
  for sequence in 1..<UInt64(count) + 1 {
    let words = LogRecord.extent(
      offset: Int64(sequence) << 16, byteCount: 1 << 16, contentHash: sequence
    ).encoded(sequence: sequence, salt: 1)
    let record = withUnsafeBytes(of: words) { LogRecord($0, sequence: sequence, salt: 1) }
    if case .extent(let offset, let byteCount, _) = record {
      extents.insert(offset..<offset + byteCount)
    }
  }
  return UInt64(extents.byteCount)
}

// MARK: Texts

private func parseList(_ count: Int) throws -> UInt64 {
  try UInt64(SourceListReader.parse(listText(count), sourceName: "list").entries.count)
}

private func parseListAsTree(_ count: Int) throws -> UInt64 {
  try UInt64(SourceListReader.parse(listText(count), sourceName: "list", tree: true).entries.count)
}

private func listText(_ count: Int) -> [UInt8] {
  var bytes = Array("# a list\n".utf8)
  for index in 0..<max(1, count) {
    bytes += Array("https://data.example.org/sets/2026/part%2D\(index).parquet?v=1\n".utf8)
    if index % 10 == 0 { bytes += Array("  header=X-Set: 2026\n".utf8) }
  }
  return bytes
}

private func parseHeads(_ count: Int) -> UInt64 {
  let lines = [
    "HTTP/1.1 206 Partial Content\r\n", "Server: nginx\r\n",
    "Date: Sat, 21 Nov 2026 08:00:00 GMT\r\n", "Content-Type: application/octet-stream\r\n",
    "Content-Length: 65536\r\n", "ETag: \"5f-1a2b3c\"\r\n",
    "Content-Range: bytes 0-65535/1073741824\r\n", "\r\n",
  ].map { Array($0.utf8) }
  var sum: UInt64 = 0
  for _ in 0..<count {
    var parser = HeadParser()
    for line in lines {
      let event = line.withUnsafeBytes { parser.take($0) }
      if case .head(let response) = event { sum &+= UInt64(response.headerFields.count) }
    }
  }
  return sum
}

private func report(_ count: Int) -> StatusReport {
  let files = (0..<count).map { index in
    FileStatus(
      name: "sets/2026/part-\(index).parquet",
      url: "https://data.example.org/sets/2026/part-\(index).parquet", state: .idle)
  }
  return StatusReport(
    mountpoint: "/mnt/remote", uptimeSeconds: 60, files: files,
    cache: CacheStatus(error: nil, failures: 0), kernel: KernelStatus(inodes: 1, openHandles: 1))
}

private func describeStatus(_ count: Int) -> UInt64 { UInt64(report(count).text().utf8.count) }

private func encodeStatus(_ count: Int) -> UInt64 { UInt64(report(count).json().count) }
