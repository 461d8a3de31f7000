/// Writes JSON (RFC 8259) in the order of its calls, without spaces.
package struct JSONWriter {
  package private(set) var bytes: [UInt8] = []

  /// Whether the next member or element needs a comma before it.
  private var needsComma = false

  package init(capacity: Int) { bytes.reserveCapacity(capacity) }

  package mutating func object(_ body: (inout JSONWriter) -> Void) {
    bytes.append(UInt8(ascii: "{"))
    needsComma = false
    body(&self)
    bytes.append(UInt8(ascii: "}"))
    needsComma = true
  }

  package mutating func array<Element>(
    _ elements: [Element], _ body: (Element, inout JSONWriter) -> Void
  ) {
    bytes.append(UInt8(ascii: "["))
    needsComma = false
    for element in elements {
      separate()
      body(element, &self)
    }
    bytes.append(UInt8(ascii: "]"))
    needsComma = true
  }

  package mutating func member(_ key: some CodingKey, _ body: (inout JSONWriter) -> Void) {
    separate()
    string(key.stringValue)
    bytes.append(UInt8(ascii: ":"))
    body(&self)
    needsComma = true
  }

  package mutating func member(_ key: some CodingKey, _ value: String?) {
    member(key) { writer in
      if let value { writer.string(value) } else { writer.null() }
    }
  }

  package mutating func member(_ key: some CodingKey, _ value: Int) { member(key, Int64(value)) }

  package mutating func member(_ key: some CodingKey, _ value: Int64?) {
    member(key) { writer in
      if let value { writer.bytes += String(value).utf8 } else { writer.null() }
    }
  }

  /// A number of seconds, to the millisecond; `null` for nil and for values that are not finite.
  package mutating func member(_ key: some CodingKey, _ value: Double?) {
    member(key) { writer in
      if let value, value.isFinite {
        writer.bytes += decimal(value, fractionDigitCount: 3).utf8
      } else {
        writer.null()
      }
    }
  }

  package mutating func member(_ key: some CodingKey, _ value: Bool) {
    member(key) { $0.bytes += (value ? "true" : "false").utf8 }
  }

  package mutating func newline() { bytes.append(UInt8(ascii: "\n")) }

  private mutating func separate() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    needsComma = false
  }

  package mutating func null() { bytes += "null".utf8 }

  /// A string with the escapes of RFC 8259 §7.
  ///
  /// DEL and the C1 controls are escaped too, for people who print the file on a terminal.
  private mutating func string(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    var previous: UInt8 = 0
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(byte)
      case 0..<0x20, 0x7F:
        escape(byte)
      case 0x80...0x9F where previous == 0xC2:
        bytes.removeLast()
        escape(byte)
      default:
        bytes.append(byte)
      }
      previous = byte
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private mutating func escape(_ codePoint: UInt8) {
    let digits = Array("0123456789abcdef".utf8)
    bytes += "\\u00".utf8
    bytes.append(digits[Int(codePoint >> 4)])
    bytes.append(digits[Int(codePoint & 0xF)])
  }
}
