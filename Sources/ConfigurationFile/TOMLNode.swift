internal import CTOMLPlusPlus

/// A key of a TOML document with its value, or an element of an array.
///
/// Parsed by toml++, which knows the line of each value. TOMLKit, which wraps it for Swift, does
/// not return lines.
struct TOMLNode {
  enum Value {
    case string(String)
    case integer(Int64)
    case number(Double)
    case boolean(Bool)
    /// A date, a time, or both.
    case time
    case array([TOMLNode])
    /// In the order of the file.
    case table([TOMLNode])
  }

  /// Empty for an element of an array.
  let key: String
  /// From 1.
  let line: Int
  let value: Value

  /// The tables and keys at the top of a document, in the order of the file.
  static func document(_ bytes: [UInt8]) throws(ConfigurationError) -> [TOMLNode] {
    if let line = DottedKeys.lineOfTooMany(in: bytes) {
      throw ConfigurationError("a key of more than \(DottedKeys.mostParts) parts", line: line)
    }
    var visited: [Visited] = []
    var error = httpfs_toml_error()
    let isDocument = withUnsafeMutablePointer(to: &visited) { context in
      bytes.withUnsafeBytes {
        httpfs_toml_parse($0.baseAddress, $0.count, context, visit, &error)
      }
    }
    guard isDocument else {
      let message = withUnsafeBytes(of: &error.message) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      throw ConfigurationError("no TOML: \(message)", line: Int(error.line))
    }
    var rest = visited[...]
    return nodes(&rest, depth: 0)
  }

  /// Removes the nodes of one depth, with those inside them, from the front.
  private static func nodes(_ rest: inout ArraySlice<Visited>, depth: Int) -> [TOMLNode] {
    var nodes: [TOMLNode] = []
    while let next = rest.first, next.depth == depth {
      rest.removeFirst()
      let value: Value
      switch next.value {
      case .array: value = .array(Self.nodes(&rest, depth: depth + 1))
      case .table:
        value = .table(Self.nodes(&rest, depth: depth + 1).sorted { $0.line < $1.line })
      default: value = next.value
      }
      nodes.append(TOMLNode(key: next.key, line: next.line, value: value))
    }
    return depth == 0 ? nodes.sorted { $0.line < $1.line } : nodes
  }

  /// A node as the parser returns it; an array or a table is still empty.
  fileprivate struct Visited {
    let depth: Int
    let key: String
    let line: Int
    let value: Value

    init(_ node: httpfs_toml_node) {
      depth = Int(node.depth)
      key = Self.text(node.key, node.key_byte_count)
      line = Int(node.line)
      value =
        switch node.kind {
        case httpfs_toml_table: .table([])
        case httpfs_toml_array: .array([])
        case httpfs_toml_string: .string(Self.text(node.text, node.text_byte_count))
        // A file mode would change its meaning without its base.
        case httpfs_toml_integer where node.is_octal:
          .string("0o" + String(node.integer, radix: 8))
        case httpfs_toml_integer: .integer(node.integer)
        case httpfs_toml_float: .number(node.real)
        case httpfs_toml_boolean: .boolean(node.boolean)
        default: .time
        }
    }

    private static func text(_ start: UnsafePointer<CChar>?, _ byteCount: Int) -> String {
      String(decoding: UnsafeRawBufferPointer(start: start, count: byteCount), as: UTF8.self)
    }
  }
}

/// Adds a node to the array that `context` points to.
private func visit(_ context: UnsafeMutableRawPointer?, _ node: UnsafePointer<httpfs_toml_node>?) {
  guard let context, let node else { return }
  context.assumingMemoryBound(to: [TOMLNode.Visited].self).pointee.append(.init(node.pointee))
}
