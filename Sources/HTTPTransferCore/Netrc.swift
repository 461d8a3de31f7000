/// The credentials of a `.netrc` file, by host.
///
/// Not parsed by libcurl (`CURLOPT_NETRC`): libcurl reads the file for every request on the network
/// thread, even if other users can read it, and looks hosts up again after each redirect. A server
/// could thus have a password sent to another host of its choice (CVE-2024-11053 and CVE-2025-0167
/// of libcurl went further still).
package struct Netrc: Sendable, Equatable {
  /// A user and, if the file has one, a password; neither is encoded.
  package struct Credentials: Sendable, Equatable {
    package var user: String
    package var password: String

    package init(user: String, password: String) {
      self.user = user
      self.password = password
    }
  }

  /// What is wrong with a file; never contains a word of the file.
  package struct ParseError: Error, Equatable, CustomStringConvertible {
    package let line: Int
    package let message: String

    package var description: String { "line \(line): \(message)" }
  }

  private struct Entry: Equatable {
    var user = ""
    var password = ""
  }

  /// By host in lower case (nil for `default`), each in file order: a list may name a million
  /// hosts.
  private var entries: [String?: [Entry]] = [:]

  /// The most entries of a file.
  package static let maximumEntryCount = 10_000

  /// Parses a file: `machine`, `default`, `login`, `password`, `account` and `macdef`, separated by
  /// blanks and newlines.
  ///
  /// As in curl, values may be in double quotes, and `#` begins a comment where a keyword is
  /// expected.
  package init(_ bytes: [UInt8]) throws(ParseError) {
    var reader = WordReader(bytes)
    var count = 0
    /// The current entry and its host.
    var current: (host: String?, entry: Entry)?
    func end() { if let current { entries[current.host, default: []].append(current.entry) } }
    while let word = try reader.next(isValue: false) {
      switch word {
      case "machine", "default":
        end()
        let host = word == "machine" ? try reader.value(of: word).lowercased() : nil
        current = (host, Entry())
        count += 1
        guard count <= Self.maximumEntryCount else {
          throw ParseError(
            line: reader.line, message: "more than \(Self.maximumEntryCount) machines")
        }
      case "login", "password", "account":
        let value = try reader.value(of: word)
        guard current != nil else {
          throw ParseError(line: reader.line, message: "'\(word)' before any 'machine'")
        }
        if word == "login" { current?.entry.user = value }
        if word == "password" { current?.entry.password = value }
      case "macdef": reader.skipMacro()
      default:
        // The word may be a piece of a password that holds a blank.
        throw ParseError(
          line: reader.line,
          message: "neither machine, default, login, password, account nor macdef")
      }
    }
    end()
  }

  /// The credentials for a host.
  ///
  /// - Parameters:
  ///   - host: without brackets and port, in any case.
  ///   - user: the user in the URL; nil for the first entry.
  /// - Returns: the first entry of that host and user, otherwise that of `default`; nil for none.
  package func credentials(forHost host: String, user: String? = nil) -> Credentials? {
    func matches(_ entry: Entry) -> Bool {
      !(entry.user.isEmpty && entry.password.isEmpty)
        && (user == nil || entry.user == user || entry.user.isEmpty)
    }
    let entry =
      entries[host.lowercased()]?.first(where: matches) ?? entries[nil]?.first(where: matches)
    return entry.map { Credentials(user: user ?? $0.user, password: $0.password) }
  }
}

/// Splits a netrc file into words.
private struct WordReader {
  private let bytes: [UInt8]
  private var position = 0
  /// The line of the last word, counted from 1.
  private(set) var line = 1

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0D
  }

  private static let newline = UInt8(ascii: "\n")
  private static let quote = UInt8(ascii: "\"")

  /// The next word; nil at the end.
  mutating func next(isValue: Bool) throws(Netrc.ParseError) -> String? {
    while position < bytes.count {
      let byte = bytes[position]
      if byte == Self.newline {
        line += 1
        position += 1
      } else if Self.isBlank(byte) {
        position += 1
      } else if byte == UInt8(ascii: "#"), !isValue {
        while position < bytes.count, bytes[position] != Self.newline { position += 1 }
      } else if byte == Self.quote {
        return try quoted()
      } else {
        let start = position
        while position < bytes.count, bytes[position] != Self.newline,
          !Self.isBlank(bytes[position])
        { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
      }
    }
    return nil
  }

  mutating func value(of keyword: String) throws(Netrc.ParseError) -> String {
    guard let value = try next(isValue: true) else {
      throw Netrc.ParseError(line: line, message: "nothing after '\(keyword)'")
    }
    return value
  }

  /// Parses a word in double quotes, which must end on its line; `\"` and `\\` stand for `"` and
  /// `\`.
  private mutating func quoted() throws(Netrc.ParseError) -> String {
    var word: [UInt8] = []
    position += 1
    while position < bytes.count, bytes[position] != Self.newline {
      var byte = bytes[position]
      position += 1
      if byte == Self.quote { return String(decoding: word, as: UTF8.self) }
      if byte == UInt8(ascii: "\\"), position < bytes.count, bytes[position] != Self.newline {
        byte = Self.unescaped(bytes[position])
        position += 1
      }
      word.append(byte)
    }
    throw Netrc.ParseError(line: line, message: "a quotation mark without its counterpart")
  }

  private static func unescaped(_ byte: UInt8) -> UInt8 {
    switch byte {
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: byte
    }
  }

  /// Skips a macro of ftp(1), which ends with an empty line.
  mutating func skipMacro() {
    var isLineEmpty = false
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      guard byte == Self.newline else {
        if !Self.isBlank(byte) { isLineEmpty = false }
        continue
      }
      line += 1
      if isLineEmpty { return }
      isLineEmpty = true
    }
  }
}
