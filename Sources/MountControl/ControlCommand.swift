internal import HTTPTransferCore

/// What can be asked of files of a mount.
public enum FileVerb: String, Sendable, Hashable, CaseIterable {
  /// Fetch whole files in the background.
  case prefetch
  /// Fetch nothing but what a read waits for.
  case pause
  /// Take ``pause`` back.
  case resume
  /// Take ``prefetch`` back.
  case cancel
  /// Remove the cached bytes.
  case evict
  /// Keep the cached bytes, however full the cache is.
  case pin
  /// Take ``pin`` back.
  case unpin
  /// Compare the cached bytes with their recorded hashes.
  case verify
  /// Ask the server anew at the next look; without names, read the list again.
  case refresh

  /// Whether it means all files, or the mount, where no name follows.
  public var mayLackNames: Bool {
    switch self {
    case .pause, .resume, .refresh: true
    case .prefetch, .cancel, .evict, .pin, .unpin, .verify: false
    }
  }
}

/// One line of what is written to `.control`.
public enum ControlCommand: Sendable, Hashable {
  /// What to do with the files that the patterns stand for; none only where the verb may lack them.
  case files(FileVerb, [NamePattern])
  /// How many connections each file may have from now on; nil lets each find its best number.
  case connections(Int?)
  /// How many bytes a second may be fetched of each file that the patterns stand for, without any of all
  /// files together; nil for as many as will come.
  case rateLimit(Int64?, [NamePattern])

  /// The connections of a file that may be asked for.
  public static let connectionCounts = 1...64

  /// The command of one line, without its newline.
  ///
  /// - Throws: why it is none.
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

  /// The count that an argument of `connections` says: `.some(nil)` for `auto`.
  public static func connections(_ argument: String) -> Int?? {
    if argument == "auto" { return .some(nil) }
    guard let number = number(ofDigits: argument.utf8), let count = Int(exactly: number),
      connectionCounts.contains(count)
    else { return .none }
    return .some(count)
  }
}
