import Foundation
import MountStatus
import Synchronization
import Testing

@Suite struct StatusStreamTests {
  private static func file(_ index: Int) -> FileStatus {
    FileStatus(
      name: "d\(index % 7)/file \(index).bin", url: "http://h/\(index)",
      state: index % 3 == 0 ? .unknown : .idle, length: Int64(index), cachedBytes: 1)
  }

  private static func report(_ count: Int) -> StatusReport {
    StatusReport(mountpoint: "/mnt", uptimeSeconds: 1, files: (0..<count).map(file))
  }

  private static func stream(_ form: StatusDocument.Form, _ count: Int) -> StatusStream {
    let report = report(count)
    let document = StatusDocument(form, head: report, sums: StatusSums(of: report.files))
    return StatusStream(document, fileCount: count, file: file)
  }

  private static func whole(_ form: StatusDocument.Form, _ count: Int) -> [UInt8] {
    switch form {
    case .text: Array(report(count).text().utf8)
    case .json: report(count).json()
    case .metrics: report(count).metrics()
    }
  }

  @Test(arguments: StatusDocument.Form.allCases, [0, 1, 2, 100, 40_000])
  func aStreamReadToItsEndIsTheReport(form: StatusDocument.Form, count: Int) throws {
    let stream = Self.stream(form, count)
    var bytes: [UInt8] = []
    while true {
      let piece = try #require(stream.read(at: bytes.count, byteCount: 70_001))
      if piece.isEmpty { break }
      bytes += piece
    }
    #expect(bytes == Self.whole(form, count))
  }

  /// The bound holds for any number of files: only the window and the bytes of one read are kept.
  @Test(arguments: StatusDocument.Form.allCases)
  func whatIsHeldDoesNotGrowWithTheFiles(form: StatusDocument.Form) throws {
    let stream = Self.stream(form, 100_000)
    var offset = 0
    var greatest = 0
    while let piece = stream.read(at: offset, byteCount: 1 << 20), !piece.isEmpty {
      offset += piece.count
      greatest = max(greatest, stream.heldByteCount)
    }
    #expect(offset > 2 * StatusStream.window)
    #expect(greatest <= StatusStream.window + 2 << 20, "\(greatest)")
  }

  @Test func aShortReportIsAPictureOfOneMomentInAnyOrder() throws {
    let asked = Counter()
    let report = Self.report(1000)
    let document = StatusDocument(.json, head: report, sums: StatusSums(of: report.files))
    let stream = StatusStream(document, fileCount: 1000) { index in
      _ = asked.advance(by: 1)
      return Self.file(index)
    }
    #expect(asked.value == 1000)
    let whole = report.json()
    for offset in [whole.count - 10, 0, 50_000, whole.count, whole.count + 1, .max, 1] {
      let start = min(offset, whole.count)
      let expected = whole[start..<min(start + 100, whole.count)]
      #expect(stream.read(at: offset, byteCount: 100).map { $0[...] } == expected, "\(offset)")
    }
    #expect(asked.value == 1000)
  }

  @Test func aLongReportForgetsWhatLiesFarBehindAndSaysSo() throws {
    let stream = Self.stream(.json, 100_000)
    let whole = Self.whole(.json, 100_000)
    // A jump forward.
    let far = whole.count - 100
    #expect(stream.read(at: far, byteCount: 1000) == Array(whole[far...]))
    // A step back.
    #expect(stream.read(at: far - 1000, byteCount: 10) == Array(whole[(far - 1000)..<(far - 990)]))
    #expect(stream.read(at: 0, byteCount: 10) == nil)
    #expect(stream.read(at: whole.count, byteCount: 10) == [])
  }

  @Test func eachReaderOfSeveralGetsTheRightBytes() async throws {
    let stream = Self.stream(.text, 60_000)
    let whole = Self.whole(.text, 60_000)
    let next = Counter()
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<8 {
        group.addTask {
          var isRight = true
          while true {
            let offset = next.advance(by: 65_536)
            guard offset < whole.count else { return isRight }
            let end = min(offset + 65_536, whole.count)
            let piece = stream.read(at: offset, byteCount: 65_536)
            if piece != Array(whole[offset..<end]) { isRight = false }
          }
        }
      }
      for await isRight in group { #expect(isRight) }
    }
  }
}

/// A number that several tasks increment.
private final class Counter: Sendable {
  private let number = Atomic<Int>(0)

  var value: Int { number.load(ordering: .relaxed) }

  /// - Returns: the previous number.
  func advance(by step: Int) -> Int { number.wrappingAdd(step, ordering: .relaxed).oldValue }
}
