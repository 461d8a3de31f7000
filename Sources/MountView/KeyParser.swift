/// Parses keys from the bytes that a terminal in raw mode sends (ECMA-48, like xterm).
///
/// It skips keys without a meaning here, such as those with Alt.
package struct KeyParser: Sendable {
  /// The first bytes of an incomplete key.
  private var pending: [UInt8] = []

  /// Longer than any key: more bytes are noise.
  private static let byteLimit = 32

  package init() {}

  /// Whether a key may be incomplete: the Escape key looks like the start of others.
  package var isWaiting: Bool { !pending.isEmpty }

  /// Takes bytes as they arrive; a key may be split between two calls.
  package mutating func keys(from bytes: some Sequence<UInt8>) -> [Key] {
    var rest = (pending + bytes)[...]
    pending = []
    var keys: [Key] = []
    while let first = rest.first {
      let parsed = first == 0x1B ? Self.sequence(rest) : Self.plain(rest)
      switch parsed {
      case .incomplete:
        if rest.count < Self.byteLimit { pending = Array(rest) }
        return keys
      case .key(let key, let byteCount):
        if let key { keys.append(key) }
        rest = rest.dropFirst(byteCount)
      }
    }
    return keys
  }

  /// Takes the pending bytes as a complete key, because nothing has followed for a moment.
  package mutating func flush() -> [Key] {
    defer { pending = [] }
    return pending == [0x1B] ? [.escape] : []
  }

  private enum Parsed {
    case incomplete
    /// A key, nil if it has no meaning, and its number of bytes.
    case key(Key?, byteCount: Int)
  }

  /// A key whose bytes begin with ESC.
  private static func sequence(_ bytes: ArraySlice<UInt8>) -> Parsed {
    guard let second = bytes.dropFirst().first else { return .incomplete }
    switch second {
    case 0x1B:
      return .key(.escape, byteCount: 1)
    case UInt8(ascii: "["):
      // Parameters and intermediates are below 0x40, the final byte is not.
      let parameters = bytes.dropFirst(2).prefix { (0x20...0x3F).contains($0) }
      guard let final = bytes.dropFirst(2 + parameters.count).first else { return .incomplete }
      return .key(key(final: final, parameters: parameters), byteCount: 3 + parameters.count)
    case UInt8(ascii: "O"):
      guard let final = bytes.dropFirst(2).first else { return .incomplete }
      return .key(key(final: final, parameters: []), byteCount: 3)
    default:
      // Alt with another key.
      guard case .key(_, let byteCount) = plain(bytes.dropFirst()) else { return .incomplete }
      return .key(nil, byteCount: 1 + byteCount)
    }
  }

  private static func key(final: UInt8, parameters: ArraySlice<UInt8>) -> Key? {
    switch final {
    case UInt8(ascii: "A"): return .up
    case UInt8(ascii: "B"): return .down
    case UInt8(ascii: "H"): return .home
    case UInt8(ascii: "F"): return .end
    case UInt8(ascii: "M"): return .enter
    case UInt8(ascii: "~"):
      // A second parameter describes Shift and other modifiers.
      let first = parameters.prefix { $0 != UInt8(ascii: ";") }
      switch String(decoding: first, as: UTF8.self) {
      case "1", "7": return .home
      case "4", "8": return .end
      case "5": return .pageUp
      case "6": return .pageDown
      default: return nil
      }
    default: return nil
    }
  }

  private static func plain(_ bytes: ArraySlice<UInt8>) -> Parsed {
    guard let first = bytes.first else { return .incomplete }
    switch first {
    case 0x0D, 0x0A: return .key(.enter, byteCount: 1)
    case 0x08, 0x7F: return .key(.backspace, byteCount: 1)
    case 0x01...0x1A:
      return .key(.control(Character(Unicode.Scalar(first + 0x60))), byteCount: 1)
    case 0x20..<0x7F:
      return .key(.character(Character(Unicode.Scalar(first))), byteCount: 1)
    default: break
    }
    let byteCount = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1
    guard bytes.count >= byteCount else { return .incomplete }
    guard byteCount > 1,
      let character = String(validating: bytes.prefix(byteCount), as: UTF8.self)?.first
    else { return .key(nil, byteCount: 1) }
    return .key(.character(character), byteCount: byteCount)
  }
}
