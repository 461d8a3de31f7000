import FoundationEssentials

/// Any JSON value, parsed once, so errors can name its place.
enum JSONValue: Decodable, Equatable {
  case null
  case flag(Bool)
  case integer(Int64)
  case fraction(Double)
  case text(String)
  case list([JSONValue])
  case object([String: JSONValue])

  /// The maximum nesting of arrays and objects.
  ///
  /// A script needs fewer than 10 levels, and the decoder's recursion must fit the small stack of a
  /// connection's thread.
  private static let depthLimit = 24

  /// Reads a text of JSON.
  init(parsing bytes: [UInt8]) throws(RuleSet.CommandError) {
    guard Self.depth(of: bytes) <= Self.depthLimit else {
      throw RuleSet.CommandError(description: "JSON nested deeper than \(Self.depthLimit)")
    }
    do {
      self = try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    } catch {
      throw RuleSet.CommandError(description: "not JSON: \(error)")
    }
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let number = try? container.decode(Int64.self) {
      self = .integer(number)
    } else if let number = try? container.decode(Double.self) {
      self = .fraction(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([JSONValue].self) {
      self = .list(list)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  /// The maximum nesting of brackets, except those in strings.
  private static func depth(of bytes: [UInt8]) -> Int {
    var depth = 0
    var deepest = 0
    var isInText = false
    var isEscaped = false
    for byte in bytes {
      if isEscaped {
        isEscaped = false
      } else if isInText {
        isEscaped = byte == UInt8(ascii: "\\")
        isInText = byte != UInt8(ascii: "\"")
      } else {
        switch byte {
        case UInt8(ascii: "\""): isInText = true
        case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
        default: break
        }
        deepest = max(deepest, depth)
      }
    }
    return deepest
  }
}
