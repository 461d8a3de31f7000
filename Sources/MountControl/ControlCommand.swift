internal import HTTPTransferCore

/// The operations on files of a mount.
package enum FileVerb: String, Sendable, Hashable, CaseIterable {
  /// Fetch whole files in the background.
  case prefetch
  /// Fetch only what a read waits for.
  case pause
  /// Undo ``pause``.
  case resume
  /// Undo ``prefetch``.
  case cancel
  /// Remove the cached bytes.
  case evict
  /// Keep the cached bytes, however full the cache is.
  case pin
  /// Undo ``pin``.
  case unpin
  /// Compare the cached bytes with their recorded hashes.
  case verify
  /// Ask the server again at the next lookup; without names, read the list again.
  case refresh

  /// Whether the verb, without names, applies to all files or to the mount.
  package var mayLackNames: Bool {
    switch self {
    case .pause, .resume, .refresh: true
    case .prefetch, .cancel, .evict, .pin, .unpin, .verify: false
    }
  }
}

/// One line written to `.control`.
package enum ControlCommand: Sendable, Hashable {
  /// A verb for the files that match the patterns; no patterns only if the verb may lack them.
  case files(FileVerb, [NamePattern])
  /// The number of connections of each file from now on; nil lets each file find its best number.
  case connections(Int?)
  /// The maximum number of bytes per second for each file that matches the patterns, or without
  /// patterns for all files together; nil for no limit.
  case rateLimit(Int64?, [NamePattern])

  /// The allowed numbers of connections per file.
  package static let connectionCounts = 1...64

  /// Parses one line without its newline.
  ///
  /// - Throws: why the line is not a command.
  init(words: [String]) throws(ControlRefusal) {
    guard let name = words.first else { throw .invalid("an empty command") }
    let arguments = words.dropFirst()
    if let verb = FileVerb(rawValue: name) {
      guard !arguments.isEmpty || verb.mayLackNames else {
        throw .invalid("'\(name)' needs the name of a file")
      }
      self = .files(verb, arguments.map(NamePattern.init))
      return
    }
    switch name {
    case "connections":
      guard arguments.count == 1, let argument = arguments.first,
        let count = Self.connections(argument)
      else {
        throw .invalid("'connections' needs a number from 1 to 64, or auto")
      }
      self = .connections(count)
    case "rate-limit":
      guard let argument = arguments.first, let rate = bytesPerSecond(ofText: argument)
      else {
        throw .invalid("'rate-limit' needs bytes per second, as 500K or 10M, or 0 for no limit")
      }
      self = .rateLimit(rate == 0 ? nil : rate, arguments.dropFirst().map(NamePattern.init))
    default:
      throw .invalid("there is no command '\(name)'")
    }
  }

  /// The number in an argument of `connections`: `.some(nil)` for `auto`.
  package static func connections(_ argument: String) -> Int?? {
    if argument == "auto" { return .some(nil) }
    guard let number = number(ofDigits: argument.utf8), let count = Int(exactly: number),
      connectionCounts.contains(count)
    else { return .none }
    return .some(count)
  }
}
