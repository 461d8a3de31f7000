internal import HTTPTransferCore
package import HTTPTypes

/// Parses the lines of a response's head, as libcurl passes them on, into an `HTTPResponse`.
///
/// A status line starts a new head, so that interim (1xx) responses and the head of an
/// authentication round are dropped. After the final head is complete, further lines (trailers) are
/// ignored.
package struct HeadParser {
  /// The maximum number of header field bytes of a response, including all its interim heads and
  /// its trailers.
  package static let byteLimit = 256 * 1024

  /// The maximum number of lines, including folded ones; each costs a microsecond.
  package static let lineLimit = 2 * HTTPFields.foreignLimit

  package enum Event {
    case more
    /// The blank line after the fields of a final response.
    case head(HTTPResponse)
    /// More bytes than ``byteLimit``, more lines than ``lineLimit``, or more fields than
    /// `HTTPFields.foreignLimit`.
    case tooLarge
    case malformed
  }

  private var status: Int?
  private var fields = HTTPFields()
  /// The field that the next line may continue.
  ///
  /// It is made once, at its end, because each continuation would copy all of it.
  private var lastName: HTTPField.Name?
  private var lastValue: [UInt8] = []
  private var byteCount = 0
  private var lineCount = 0
  private var isComplete = false

  package init() {}

  /// Whether a head has begun and has not ended yet.
  package var isWithinHead: Bool { status != nil && !isComplete }

  /// Parses one line, including its line ending.
  package mutating func take(_ line: UnsafeRawBufferPointer) -> Event {
    byteCount += line.count
    lineCount += 1
    guard byteCount <= Self.byteLimit, lineCount <= Self.lineLimit else { return .tooLarge }
    guard !isComplete else { return .more }
    var bytes = line[...]
    while let last = bytes.last, last == 0x0A || last == 0x0D { bytes = bytes.dropLast() }
    if bytes.starts(with: "HTTP/".utf8) {
      fields = HTTPFields()
      lastName = nil
      status = Self.statusCode(of: bytes)
      return status == nil ? .malformed : .more
    }
    guard let status else { return .malformed }
    if bytes.isEmpty {
      guard flush() else { return .tooLarge }
      // What follows a switch of protocols, which we never request, is not HTTP.
      if status == 101 { return .malformed }
      if (100..<200).contains(status) { return .more }
      isComplete = true
      return .head(HTTPResponse(status: .init(code: status), headerFields: fields))
    }
    if let first = bytes.first, first == 0x20 || first == 0x09 {
      // obs-fold (RFC 9112 §5.2): the line continues the previous value.
      dropTrailingSpace()
      if !lastValue.isEmpty { lastValue.append(0x20) }
      lastValue.append(contentsOf: bytes.drop(while: Self.isSpace))
      return .more
    }
    guard flush() else { return .tooLarge }
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
      let name = HTTPField.Name(String(decoding: bytes[..<colon], as: UTF8.self))
    else { return .more }
    lastName = name
    lastValue = Array(bytes[bytes.index(after: colon)...].drop(while: Self.isSpace))
    return .more
  }

  /// Adds the last field, whose value is complete; false if there are too many.
  private mutating func flush() -> Bool {
    guard let name = lastName else { return true }
    lastName = nil
    dropTrailingSpace()
    return fields.take(HTTPField(name: name, value: lastValue))
  }

  private mutating func dropTrailingSpace() {
    while let last = lastValue.last, Self.isSpace(last) { lastValue.removeLast() }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  /// The code in `HTTP/1.1 206 Partial Content`; nil unless it is from 100 to 999.
  private static func statusCode(of line: Slice<UnsafeRawBufferPointer>) -> Int? {
    let parts = line.split(separator: 0x20, maxSplits: 2)
    guard parts.count >= 2, parts[1].count == 3,
      let code = Int(String(decoding: parts[1], as: UTF8.self)), (100...999).contains(code)
    else { return nil }
    return code
  }
}
