import ExtentRecord
import HTTPTransferCore
import SeededRandom

/// The parts of an entry's record file, to damage it selectively: each part valid but in a wrong
/// place.
struct RecordImage {
  /// The header with its checksum.
  var header: [UInt8]
  /// The records of the log, each ``LogRecord/byteCount`` long.
  var records: [[UInt8]]
  /// The seed of the checksums.
  let salt: UInt64

  /// Splits a record file; nil if it has no header.
  init?(_ bytes: [UInt8]) {
    let count = bytes.withUnsafeBytes { RecordHeader.byteCount(ofHeaderStartingWith: $0) }
    guard let count, count <= bytes.count,
      let parsed = bytes[..<count].withUnsafeBytes({ RecordHeader($0) })
    else { return nil }
    header = Array(bytes[..<count])
    salt = parsed.salt
    records = stride(from: count, to: bytes.count, by: LogRecord.byteCount).map {
      Array(bytes[$0..<min(bytes.count, $0 + LogRecord.byteCount)])
    }
  }

  /// The bytes of the file.
  var bytes: [UInt8] { header + records.joined() }

  // MARK: Forgery

  /// Gives the record at `index` a checksum that matches its current content.
  ///
  /// The record also gets the sequence number of its place.
  mutating func sign(recordAt index: Int) {
    guard records[index].count == LogRecord.byteCount else { return }
    Self.store(UInt64(index + 1), in: &records[index], at: 8)
    let sum = records[index][8...].withUnsafeBytes { ContentHash.hash($0, seed: salt) }
    Self.store(sum, in: &records[index], at: 0)
  }

  /// Gives the header a checksum and a length that match its current content.
  mutating func signHeader() {
    guard header.count >= RecordHeader.minimumByteCount else { return }
    let count = UInt64(header.count)
    for index in 0..<4 { header[12 + index] = UInt8(truncatingIfNeeded: count >> (8 * index)) }
    let salt = header.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 16, as: UInt64.self) }
    let end = header.count - 8
    let sum = header[..<end].withUnsafeBytes {
      ContentHash.hash($0, seed: UInt64(littleEndian: salt))
    }
    Self.store(sum, in: &header, at: end)
  }

  /// Appends a record that is valid except for its claim.
  mutating func append(_ record: LogRecord) {
    let words = record.encoded(sequence: UInt64(records.count + 1), salt: salt)
    records.append(withUnsafeBytes(of: words) { Array($0) })
  }

  /// The valid records from the first on, which are complete and in their places.
  var validRecords: [LogRecord] {
    var valid: [LogRecord] = []
    for bytes in records {
      let record = bytes.withUnsafeBytes {
        LogRecord($0, sequence: UInt64(valid.count + 1), salt: salt)
      }
      guard let record else { break }
      valid.append(record)
    }
    return valid
  }

  private static func store(_ value: UInt64, in bytes: inout [UInt8], at offset: Int) {
    for index in 0..<8 { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index)) }
  }
}
