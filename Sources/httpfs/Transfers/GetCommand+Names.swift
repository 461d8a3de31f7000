import HTTPTransfer
import HTTPTransferCore
import SourceList
import TextFormat

/// The names of files that neither `--output` nor a list names.
extension GetCommand {
  /// Whether URLs or servers name the files that the user does not name.
  var naming: NamingRule {
    switch contentDisposition {
    case _ where tree: .byURL
    case true?: .byServer
    case false?: .byURL
    case nil: .byServerIfUnclear
    }
  }

  /// The entries with the names that servers give; those that then have no name at all fail.
  func withNames(
    _ entries: [SessionEntry], _ client: TransferClient, _ access: Access,
    _ urlCommand: URLCommand?, _ timeLimit: TimeLimit
  ) throws -> [SessionEntry] {
    var entries = entries
    if naming == .byURL {
      // A session may hold files that an earlier command has asked about.
      for index in entries.indices { entries[index].keepNameOfURL() }
    }
    let configuration = ServerNames.configuration(from: queueConfiguration)
    let names = ServerNames(
      queue: TransferQueue(client: client, configuration: configuration), options: options
    ) { request(for: $0, to: .discard, access, urlCommand) }
    return try names.named(entries, timeLimit: timeLimit)
  }

  /// Says how many files have the names of their URLs because a question has failed.
  static func reportNamesOfURLs(_ entries: [SessionEntry]) {
    var counts: [(origin: String, cause: JobFailure, count: Int)] = []
    var numbers: [String: Int] = [:]
    for entry in entries where entry.failure == nil {
      guard let cause = entry.questionFailure else { continue }
      let origin = entry.source.url.origin
      if let number = numbers[origin] {
        counts[number].count += 1
      } else {
        numbers[origin] = counts.count
        counts.append((origin, cause, 1))
      }
    }
    for (origin, cause, count) in counts {
      let what =
        count == 1
        ? "1 file has the name of its URL: \(origin) did not say another"
        : "\(count) files have the names of their URLs: \(origin) did not say others"
      printToStandardError(escapingControls("httpfs: \(what) (\(cause.reason))"))
    }
  }

  /// The message about a URL of the command line without a usable file name.
  static func noName(_ url: String) -> String {
    "'\(showable(url))': the URL has no file name; choose one with -o FILE"
  }

  /// The given URL without possible secrets.
  static func showable(_ text: String) -> String {
    var shown = text[...]
    // First remove the userinfo: a password may contain characters that would begin a query.
    if let at = shown.lastIndex(of: "@") {
      let scheme = shown[..<at].firstRange(of: "://").map { shown[..<$0.upperBound] }
      shown = (scheme ?? "") + shown[shown.index(after: at)...]
    }
    shown = shown.prefix { $0 != "?" && $0 != "#" }
    return escapingControls(String(shown.prefix(200)))
  }
}
