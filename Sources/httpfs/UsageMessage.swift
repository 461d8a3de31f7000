import ArgumentParser

/// A message about a command line that cannot be parsed: the parser's, in the style of all other
/// messages, with the word of httpfs for a word of other programs.
struct UsageMessage: CustomStringConvertible {
  let description: String

  /// Options of rclone, mountpoint-s3, curl, wget, axel and aria2, and those of httpfs.
  private static let optionsOfOthers = [
    "--cache": "--cache-dir", "--vfs-cache-max-size": "--cache-size",
    "--max-cache-size": "--cache-size", "--bwlimit": "--rate-limit",
    "--limit-rate": "--rate-limit", "--max-download-limit": "--rate-limit",
    "--max-overall-download-limit": "--rate-limit", "--max-speed": "--rate-limit",
    "--num-connections": "--connections", "--split": "--connections",
    "--max-connection-per-server": "--connections", "--max-concurrent-downloads": "--jobs",
    "--transfers": "--jobs", "--input-file": "--input", "--output-document": "--output",
    "--out": "--output", "--no-check-certificate": "--insecure",
    "--ca-certificate": "--cacert", "--connect-time": "--connect-timeout",
    "--speed-time": "--stall-timeout",
    "--retry": "--retries", "--tries": "--retries", "-t": "--retries",
    "--load-cookies": "--cookies", "--cookie": "--cookies",
    "--upload-file": "put", "--dir-cache-time": "--listing-ttl",
    "--metadata-ttl": "--revalidate",
  ]

  /// What to write for options of other programs that have no single word here.
  private static let adviceForOthers =
    Dictionary(
      uniqueKeysWithValues: [
        "-u", "--user", "--password", "--http-user", "--http-password", "--http-passwd",
      ].map { ($0, "use --netrc, or a URL with user:password@") }
    ).merging([
      "-v": "--json prints what happens, in lines",
      "-T": "write --timeout for wget's -T, and 'httpfs put' for curl's",
      "-U": "write --user-agent for wget's -U, and for curl's "
        + "--proxy http://user:password@host:port",
      "-A": "write --user-agent for curl's -A, and --include with -r for wget's",
    ]) { first, _ in first }

  /// Commands of other programs, and those of httpfs.
  private static let commandsOfOthers = [
    "ls": "'mounts' or 'list'", "ps": "'mounts'", "info": "'status'", "fetch": "'get'",
    "download": "'get'", "upload": "'put'",
  ]

  /// - Parameters:
  ///   - text: the parser's message.
  ///   - commands: the names of all subcommands.
  init(_ text: String, commands: [String]) {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard let first = lines.first, first.hasPrefix("Error: ") else {
      description = text
      return
    }
    let message = String(first.dropFirst("Error: ".count))
    let isCommand = text.contains("Usage: httpfs <subcommand>")
    lines[0] =
      "httpfs: " + (Self.advised(message, isCommand: isCommand, commands: commands) ?? message)
    description = lines.joined(separator: "\n")
  }

  /// The parser's text about `error`, with the usage of `command` if that found the error when it
  /// ran: the parser itself would show the usage of httpfs.
  static func text(of error: any Error, from command: (any ParsableCommand.Type)?) -> String {
    guard error is ValidationError, let command, let name = command.configuration.commandName
    else { return HTTPFS.fullMessage(for: error) }
    return command.fullMessage(for: error)
      .replacing("Usage: \(name)", with: "Usage: httpfs \(name)")
      .replacing("See '\(name)", with: "See 'httpfs \(name)")
  }

  /// The message with a better suggestion than the parser's; nil if there is none.
  ///
  /// With `isCommand`, the name of a command was expected.
  private static func advised(
    _ message: String, isCommand: Bool, commands: [String]
  ) -> String? {
    if let word = quotedWord(in: message, after: "Unknown option"),
      let option = optionsOfOthers[word]
    {
      return "Unknown option '\(word)'. Use '\(option)'."
    }
    if let word = quotedWord(in: message, after: "Unknown option") {
      if let advice = adviceForOthers[word] { return "Unknown option '\(word)': \(advice)." }
      // The parser's own suggestions may share a letter with a short word only.
      if let near = quotedWord(in: message, after: "Did you mean"),
        distance(near, word) > max(1, (word.utf8.count - 2) / 3)
      {
        return "Unknown option '\(word)'"
      }
    }
    if isCommand, let word = quotedWord(in: message, after: "nexpected argument"),
      let command = commandsOfOthers[word]
    {
      return "Unknown command '\(word)'. Use \(command)."
    }
    if isCommand, let word = quotedWord(in: message, after: "nexpected argument"),
      let near = commands.min(by: { distance($0, word) < distance($1, word) }),
      distance(near, word) <= 2
    {
      return "Unknown command '\(word)'. Did you mean '\(near)'?"
    }
    return nil
  }

  /// The first word in quotation marks after `start`.
  private static func quotedWord(in message: String, after start: String) -> String? {
    guard let place = message.firstRange(of: start) else { return nil }
    let parts = message[place.upperBound...].split(
      separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
    return parts.count == 3 ? String(parts[1]) : nil
  }

  /// How many letters must be inserted, removed or replaced to make one word of the other.
  private static func distance(_ first: String, _ second: String) -> Int {
    // Longer words are no commands or options, and would cost time.
    guard second.utf8.count <= 30 else { return .max }
    let (first, second) = (Array(first.utf8), Array(second.utf8))
    var row = Array(0...second.count)
    for (index, letter) in first.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for place in second.indices {
        let replaced = diagonal + (letter == second[place] ? 0 : 1)
        diagonal = row[place + 1]
        row[place + 1] = min(replaced, diagonal + 1, row[place] + 1)
      }
    }
    return row[second.count]
  }
}
