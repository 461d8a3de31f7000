import Foundation
import SeededRandom
import Testing

/// An interrupted download, with commits and with extents that no COMMIT covers.
///
/// It is for tests that damage the files it left.
struct PartialDownload {
  let file: RemoteTestFile
  /// The path of the complete file.
  let path: String
  /// The command that resumes the download.
  let command: [String]
  private let origin: OriginServer

  var part: String { path + ".httpfs-part" }
  var record: String { part + ".record" }

  /// Downloads most of a file, from an origin that cuts it off, and clears the origin's log.
  ///
  /// - Throws: `HarnessError` if there is nothing to continue with.
  init(_ origin: OriginServer, _ sandbox: Sandbox, using random: inout SeededGenerator) throws {
    self.origin = origin
    // More than the 16 MiB after which a COMMIT is due.
    file = RemoteTestFile.random(1, lengths: (36 << 20)...(48 << 20), using: &random)[0]
    path = "\(try sandbox.makeDirectory("partial"))/\(file.name)"
    command = [try Products.httpfs, "get", file.url(origin), "-o", path]
    // At this speed, a COMMIT precedes the end even if a sync takes half a second.
    let rate = ["total-rate": "24m", "fault": "truncate", "fault-at": "\(32 << 20)"]
    try origin.control("*/\(file.name)", rate)
    let first = try run(command + ["-x", "1", "--retries", "0"], within: .seconds(20))
    guard first.ending.isTransferFailure, FileStatus.byteCount(of: part) ?? 0 > 0 else {
      throw HarnessError("the download was to be cut: \(first.ending) \(first.error)")
    }
    guard try CacheRecord(path: record).committedByteCount > 0 else {
      throw HarnessError("the partial file has no COMMIT")
    }
    try origin.clearControl()
    try origin.clearLog()
  }

  /// The bytes of one hedge on a busy machine, and those of its loser in sockets.
  private static let hedgeByteCount: Int64 = 8 << 20

  /// Resumes the download.
  ///
  /// The file must be right at the end, and the kept bytes must not be fetched again.
  func expectCompletion(
    keeping kept: Int64, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let result = try run(command, within: .seconds(20))
    #expect(result.succeeded, "\(result.error)", sourceLocation: sourceLocation)
    #expect(
      try RealMounts.DiskRows.digest(ofFile: path) == file.digest, sourceLocation: sourceLocation)
    #expect(
      try origin.requests().bodyByteCount
        <= file.byteCount - kept + RealMounts.DiskRows.slack + Self.hedgeByteCount,
      sourceLocation: sourceLocation)
  }
}
