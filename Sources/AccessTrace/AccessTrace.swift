internal import HTTPTransferCore

/// The operations on the files of a mount, in the order in which they ended.
package struct AccessTrace: Sendable, Equatable {
  package var records: [TraceRecord]

  package init(records: [TraceRecord]) { self.records = records }

  /// The first line of the text, with the version of the format.
  package static let heading = "# httpfs access trace 1\n"

  /// The maximum length of a text, and the maximum number of operations.
  package static let maximumByteCount = 256 << 20
  package static let maximumRecordCount = 5_000_000

  /// The maximum number of bytes of one read: more than a kernel asks for at once.
  package static let maximumReadByteCount: Int64 = 256 << 20

  /// Why a text is not a trace.
  package struct ParseError: Error, Sendable, Equatable, CustomStringConvertible {
    /// From 1.
    package let line: Int
    package let reason: String

    package var description: String { "line \(line): \(reason)" }
  }

  /// Reads the text of a trace; lines that begin with `#` are comments.
  package init(text: [UInt8]) throws(ParseError) {
    var records: [TraceRecord] = []
    var number = 0
    guard text.starts(with: Self.heading.utf8) else {
      throw ParseError(
        line: 1,
        reason: "no access trace, or one of a later version of httpfs: it must begin with"
          + " '\(Self.heading.dropLast())'")
    }
    var rest = text[...]
    while !rest.isEmpty {
      let line = rest.prefix { $0 != UInt8(ascii: "\n") }
      rest = rest[line.endIndex...].dropFirst()
      number += 1
      if line.isEmpty || line.first == UInt8(ascii: "#") { continue }
      guard records.count < Self.maximumRecordCount else {
        throw ParseError(line: number, reason: "more than \(Self.maximumRecordCount) operations")
      }
      do throws(FieldError) {
        records.append(try TraceRecord(line))
      } catch {
        throw ParseError(line: number, reason: error.reason)
      }
    }
    self.records = records
  }
}

/// What is wrong with a line.
private struct FieldError: Error {
  let reason: String
}

extension TraceRecord {
  fileprivate init(_ line: ArraySlice<UInt8>) throws(FieldError) {
    guard let text = String(validating: line, as: UTF8.self) else {
      throw FieldError(reason: "bytes that are not UTF-8")
    }
    let fields = text.split(separator: "\t", omittingEmptySubsequences: false)
    guard fields.count == 7 else {
      throw FieldError(reason: "\(fields.count) fields, not 7 separated by tabs")
    }
    guard let start = Self.time(fields[0]), let end = Self.time(fields[1]), start <= end else {
      throw FieldError(reason: "start and end are not two times in order")
    }
    guard let handle = UInt64(fields[3]) else {
      throw FieldError(reason: "the handle is not a number")
    }
    let operation: Operation
    switch fields[2] {
    case "open":
      guard !fields[6].isEmpty else { throw FieldError(reason: "an open without a name") }
      let length = Int64(length: fields[5])
      guard fields[5].isEmpty || length != nil else {
        throw FieldError(reason: "the length is not a byte count")
      }
      operation = .open(name: String(fields[6]), length: length)
    case "read":
      // A read past the end, which brings no byte, may have any offset.
      guard let offset = Int64(digits: fields[4]), let byteCount = Int64(length: fields[5]),
        byteCount <= AccessTrace.maximumReadByteCount,
        byteCount == 0 || offset <= Int64.maximumFileOffset
      else {
        throw FieldError(
          reason: "offset and byte count are not a range of at most 256 MiB within a file")
      }
      operation = .read(offset: min(offset, .maximumFileOffset), byteCount: byteCount)
    case "close": operation = .close
    default: throw FieldError(reason: "unknown operation '\(fields[2])'")
    }
    self.init(start: start, end: end, handle: handle, operation: operation)
  }

  private static func time(_ text: Substring) -> Double? {
    guard let value = Double(text), value >= 0, value <= 1e9 else { return nil }
    return value
  }
}
