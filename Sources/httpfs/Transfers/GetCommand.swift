import ArgumentParser
import CLinux
import Glibc
import HTTPTransfer
import HTTPTransferCore
import SourceList
import TextFormat

/// `httpfs get URL…`: accelerated downloads that can be resumed.
struct GetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Download URLs to files, over several connections.",
    discussion: """
      A file appears under its name when it is complete. Until then its bytes are in \
      NAME.httpfs-part, and the same command resumes the download. An existing file is replaced \
      only if it is an unchanged earlier download of the same URL and the server has a new \
      version. A session does not store the fields of -H.

      A URL that ends in '/' is a directory: -r downloads the files that its server lists, and \
      those in the directories below, under their relative paths. A pattern of --include or \
      --exclude is matched with the path below the listing and with its last name; its '*' also \
      matches slashes.

      A file whose URL has no ordinary file name gets the one that its server sends in \
      Content-Disposition, unless -o, out= or --tree name it.

      The options -c -nc -N -O -J -P -s -k -L -R -np of curl and wget, and -d of aria2, are \
      understood.

      Exit codes: 0 all files are complete; 1 several reasons or another one; 2 timeout; 3 not \
      found; 6 no connection; 9 disk; 19 name resolution; 22 bad response; 23 redirect; 24 access \
      denied; 32 checksum; 60 TLS; 64 bad usage; 73 a different file already exists; 130 ended by \
      Ctrl-C.
      """)

  @Argument(help: "URLs to download.")
  var urls: [String] = []

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "The file to write; a directory for several files; '-' for standard output.",
      valueName: "path"), completion: .file())
  var output: String?

  @Option(
    name: [.customShort("i"), .customLong("input")],
    help: ArgumentHelp(
      "Download the files of a list; '-' for standard input; may be repeated.", valueName: "list"),
    completion: .file())
  var lists: [String] = []

  @Option(
    help: ArgumentHelp(
      "Store unfinished downloads in this file, and resume those in it.", valueName: "file"),
    completion: .file())
  var session: String?

  @Option(
    name: [.customShort("x"), .long],
    help: ArgumentHelp("Connections per file (default: adaptive, up to 32).", valueName: "n"))
  var connections: Int?

  @Option(
    name: [.customShort("j"), .customLong("jobs")],
    help: ArgumentHelp("Number of files to download at a time.", valueName: "n"))
  var jobs: Int = 4

  @Option(
    help: ArgumentHelp("Maximum number of these from one host.", valueName: "n"))
  var perHost: Int?

  @OptionGroup var fileRate: FileRateLimitOption

  @Option(
    help: ArgumentHelp(
      "Expected checksum of the file, such as sha-256=9f86…; one URL only.",
      valueName: "algorithm=hex"
    ))
  var checksum: String?

  @Option(
    help: ArgumentHelp(
      "A file of checksums, such as SHA256SUMS: every download must match its line.",
      valueName: "file"), completion: .file())
  var checksumFile: String?

  @Option(
    help: ArgumentHelp(
      "Another server of the same file; one URL only; may be repeated.", valueName: "url"))
  var mirror: [String] = []

  @Flag(inversion: .prefixedNo, help: "Give files the modification time that the server reports.")
  var remoteTime = true

  @Flag(inversion: .prefixedNo, help: "Resume an earlier download.")
  var resume = true

  @Flag(help: "Skip files that already exist, without asking the server.")
  var skipExisting = false

  @Flag(help: "Request compressed bodies over one connection and store them decompressed.")
  var compressed = false

  @Flag(help: "Keep host and path of each URL as directories.")
  var tree = false

  @Flag(
    inversion: .prefixedNo,
    help: """
      Ask the server for the name of every file without one, or of none (default: where the URL \
      has no ordinary file name).
      """)
  var contentDisposition: Bool?

  @Flag(help: "Stop all downloads when one fails.")
  var failFast = false

  @OptionGroup var recursion: RecursionOptions

  @OptionGroup var location: URLCommandOptions

  @OptionGroup var options: TransferOptions

  /// The maximum number of connections per file without an explicit number.
  ///
  /// Connections are added while that increases the speed; some servers limit each connection to a
  /// few megabytes a second.
  ///
  /// Files that are fetched at the same time share the maximum for one host.
  private var adaptiveConnectionLimit: Int { max(8, min(32, 64 / min(jobs, max(1, urls.count)))) }

  mutating func validate() throws {
    if output == "/dev/stdout" { output = "-" }
    if output == "" { throw ValidationError("--output needs the name of a file or directory") }
    if output?.contains("://") == true {
      throw ValidationError("--output names a file or directory; a URL stands by itself")
    }
    if let connections, !(1...64).contains(connections) {
      throw ValidationError("--connections must be from 1 to 64")
    }
    guard (1...64).contains(jobs) else { throw ValidationError("--jobs must be from 1 to 64") }
    if let perHost, perHost < 1 { throw ValidationError("--per-host must be at least 1") }
    guard !urls.isEmpty || !lists.isEmpty || session != nil else {
      throw ValidationError("nothing to download: name a URL, a list (-i) or a session (--session)")
    }
    if checksum != nil, !isOneFile {
      throw ValidationError("--checksum is for one URL; in a list write checksum= below each")
    }
    if !mirror.isEmpty, !isOneFile {
      throw ValidationError("--mirror is for one URL; in a list, separate mirrors by TAB")
    }
    if skipExisting, options.overwrite {
      throw ValidationError("--skip-existing and --overwrite exclude each other")
    }
    if tree, contentDisposition == true {
      throw ValidationError("--tree and --content-disposition exclude each other")
    }
    if output == "-", !isOneFile || session != nil {
      throw ValidationError("'-o -' is for one URL")
    }
    if output == "-", options.json {
      throw ValidationError("'-o -' and --json both write to standard output; choose one")
    }
  }

  /// Whether the command line names one file, and no list or directory.
  private var isOneFile: Bool { urls.count == 1 && lists.isEmpty && !recursion.recursive }

  func run() throws {
    try reportingFailure {
      TransferRun.blockSignals()
      let timeLimit = TimeLimit(options.maxTime?.duration)
      let session = try session.map { path throws(CommandFailure) in try SessionFile(path: path) }
      let named = try loadEntries(session)
      var connectionsPerHost = 64
      if let connections { connectionsPerHost = max(64, connections * jobs) }
      let access = try Access(options.access)
      let client = options.makeClient(access, maximumConnectionsPerHost: connectionsPerHost)
      let urlCommand = makeURLCommand(access)
      defer { urlCommand?.end() }
      let entries: [SessionEntry]
      do {
        let files = try expanded(named, client, access, timeLimit)
        entries = try planned(withNames(files, client, access, urlCommand, timeLimit), session)
      } catch {
        TransferOutput.endWithoutTransfers(json: options.json)
        throw error
      }
      if output == "-" {
        return try copyToStandardOutput(entries, client, access, urlCommand, timeLimit)
      }
      try download(entries, session, client, access, urlCommand, timeLimit)
    }
  }

  // MARK: Planning

  /// The files and listings of the command line, the lists and the session.
  private func loadEntries(_ session: SessionFile?) throws(CommandFailure) -> [SessionEntry] {
    var entries: [SessionEntry] = []
    var messages: [String] = []
    for url in urls {
      do {
        var entry = try sourceEntry(of: url)
        if let checksum { entry.checksum = try Checksum(checksum) }
        for text in mirror {
          do {
            entry.mirrors.append(try RemoteURL(text))
          } catch {
            messages.append("--mirror '\(Self.showable(text))': malformed URL: \(error)")
          }
        }
        // A repeated URL means one file.
        if !entries.contains(where: { $0.source.url == entry.url }) {
          entries.append(SessionEntry(entry))
        }
      } catch let failure as CommandFailure {
        messages += failure.messages
      } catch {
        messages.append("--checksum: \(error)")
      }
    }
    guard messages.isEmpty else { throw CommandFailure(messages: messages) }
    for list in lists {
      let loaded = try loadSource(
        list, tree: tree, listings: recursion.recursive ? .always : .unnamed, naming: naming)
      if !options.quiet { printWarnings(of: loaded) }
      entries += loaded.entries.map { SessionEntry($0) }
    }
    return try session?.merged(with: entries, warns: !options.quiet) ?? entries
  }

  /// The entries with the files of their listings; without `--recursive`, listings fail.
  private func expanded(
    _ entries: [SessionEntry], _ client: TransferClient, _ access: Access, _ timeLimit: TimeLimit
  ) throws -> [SessionEntry] {
    guard recursion.recursive else {
      return entries.map { entry in
        var entry = entry
        if entry.source.isListing { entry.failure = .isDirectory }
        return entry
      }
    }
    // A listing that fails does not keep the others from being read, even with `--fail-fast`.
    var configuration = queueConfiguration
    configuration.stopsAtFailure = false
    configuration.maximumConcurrent = min(jobs, ListingReader.maximumConcurrent)
    let queue = TransferQueue(client: client, configuration: configuration)
    return try ListingReader(queue: queue, options: options, access: access)
      .expanded(entries, filter: recursion.filter, timeLimit: timeLimit)
  }

  /// The entries with their checksums and final places.
  private func planned(
    _ entries: [SessionEntry], _ session: SessionFile?
  ) throws -> [SessionEntry] {
    try TransferRun.endIfSignalled()
    var entries = entries
    if let checksumFile { try addChecksums(of: checksumFile, to: &entries) }
    var placed = try placed(entries)
    guard let session else { return placed }
    let own = absolutePath(session.store.path)
    for index in placed.indices where !placed[index].isNameless {
      try TransferRun.endIfSignalled(at: index)
      guard let obstacle = obstacle(to: placed[index].path, in: session, own) else { continue }
      guard placed[index].isNamedByAnswer else { throw CommandFailure(obstacle) }
      placed[index].failure = JobFailure(.destinationExists, obstacle, canResume: false)
    }
    for index in placed.indices { placed[index].failure = placed[index].failure?.withSession }
    return placed
  }

  /// Why a session, which has the absolute path `own`, cannot hold a file; nil if it can.
  private func obstacle(to path: String, in session: SessionFile, _ own: String) -> String? {
    guard absolutePath(path) != own, !session.store.isUsed(by: path) else {
      return "'\(path)' cannot be the session and what is downloaded at once"
    }
    // A session has a line for it, with the options of a list.
    guard !path.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
      return "a session cannot hold the name '\(path)'; choose one without line breaks and other"
        + " control characters"
    }
    return nil
  }

  /// Gives each file that is not in a session yet the checksum of the name in its URL, or else of
  /// its own: a server should not choose the line that its file is compared with.
  ///
  /// - Throws: ``CommandFailure`` with a line for each entry that has none, whatever servers say.
  private func addChecksums(
    of path: String, to entries: inout [SessionEntry]
  ) throws(CommandFailure) {
    let file = try ChecksumFile(path: path)
    var missing: [String] = []
    for index in entries.indices
    where !entries[index].isOfSession && !entries[index].source.isListing
      && !entries[index].isNameless
    {
      let entry = entries[index]
      if let checksum = file.checksum(of: entry.source.path) ?? file.checksum(of: entry.path) {
        entries[index].source.checksum = checksum
        continue
      }
      let message =
        "'\(escapingControls(entry.path))' has no line in '\(escapingControls(path))'"
      if entry.isNamedByAnswer {
        // A later run would take it for a file of the session, which needs no line.
        entries[index].failure = JobFailure(.invalidRequest, message, canResume: false)
      } else {
        missing.append(message)
      }
    }
    if !missing.isEmpty { throw CommandFailure(messages: missing) }
  }

  /// The file of a URL on the command line.
  private func sourceEntry(of url: String) throws(CommandFailure) -> SourceEntry {
    do {
      // If `--output` names the file, the URL need not have a name.
      if isOutputFile { return SourceEntry(path: output ?? "", url: try RemoteURL(url)) }
      let isListing = try RemoteURL(url).listing != nil
      guard recursion.recursive || !isListing else {
        throw CommandFailure("'\(Self.showable(url))': \(JobFailure.isDirectory.reason)")
      }
      return try SourceListReader.single(
        url: url, tree: tree, listings: recursion.recursive ? .always : .never, naming: naming
      ).entries[0]
    } catch let error as CommandFailure {
      throw error
    } catch let error as RemoteURL.ParseError {
      throw CommandFailure("'\(Self.showable(url))': malformed URL: \(error)")
    } catch is SourceListError {
      throw CommandFailure(Self.noName(url))
    } catch {
      throw CommandFailure("'\(Self.showable(url))': \(error)")
    }
  }

  /// Whether `--output` names the one file, not a directory.
  private var isOutputFile: Bool {
    guard let output, isOneFile else { return false }
    return output == "-" || (!output.hasFinalSlash && !isDirectory(output))
  }

  /// The entries with the paths of `--output`; paths are unique, except those of files that fail.
  private func placed(_ entries: [SessionEntry]) throws -> [SessionEntry] {
    var entries = entries
    for index in entries.indices where !entries[index].isPlaced {
      try TransferRun.endIfSignalled(at: index)
      if isOutputFile, let output {
        entries[index].place(at: output)
      } else {
        entries[index].place(in: output ?? ".")
      }
    }
    var seen: Set<PathKey> = []
    let directories = Self.directories(of: entries)
    let order = Self.orderOfNames(entries)
    for (count, index) in order.enumerated() {
      try TransferRun.endIfSignalled(at: count)
      let entry = entries[index]
      let path = entry.path
      let isDirectory = entry.nameSource == .response && directories.contains(PathKey(path))
      if !isDirectory, seen.insert(PathKey(path)).inserted { continue }
      // The user has not chosen the names that servers give.
      guard entry.nameSource.isOfServer || entry.isNamedByAnswer else {
        let other = order.prefix(count).lazy.map { entries[$0] }
          .first { PathKey($0.path) == PathKey(path) }
        let url = entries[index].source.url
        let helpsTree = !tree && other?.source.url.hasOtherTreeName(than: url) == true
        throw CommandFailure(
          "two files of the name '\(path)'; " + (helpsTree ? "use --tree, or " : "")
            + "give one another name in a list, with an indented line out=NAME below its URL")
      }
      entries[index].failure = .isDuplicate
    }
    return entries
  }

  /// The entries that have names, in the order in which they take them.
  ///
  /// Files of the session come first: they may have partial files. A server's name must not take
  /// the place of one that the user can see, and an answer must not decide whether another file is
  /// downloaded.
  private static func orderOfNames(_ entries: [SessionEntry]) -> [Int] {
    let named = entries.indices.filter { !entries[$0].isNameless }
    let new = named.filter { !entries[$0].isOfSession }
    let others = new.filter { !entries[$0].nameSource.isOfServer }
    return named.filter { entries[$0].isOfSession }
      + others.filter { !entries[$0].isNamedByAnswer }
      + others.filter { entries[$0].isNamedByAnswer }
      + new.filter { entries[$0].nameSource.isOfServer }
  }

  /// The directories of all files, if a response names any file; otherwise none.
  private static func directories(of entries: [SessionEntry]) -> Set<PathKey> {
    guard entries.contains(where: { $0.nameSource == .response }) else { return [] }
    var directories: Set<PathKey> = []
    for entry in entries where entry.failure == nil {
      var path = Substring(entry.path)
      while let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) {
        path = path[..<slash]
        guard directories.insert(PathKey(path)).inserted else { break }
      }
    }
    return directories
  }

  /// The absolute path, without `.`, `..` and double slashes; links are not resolved.
  private func absolutePath(_ path: String) -> String {
    var parts: [String] = []
    var whole = path
    if !path.isAbsolutePath, let directory = getcwd(nil, 0) {
      whole = String(cString: directory) + "/" + path
      free(directory)
    }
    for part in whole.pathParts() where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
  }

  private func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private func makeURLCommand(_ access: Access) -> URLCommand? {
    guard let command = location.urlCommand else { return nil }
    let isQuiet = options.quiet
    return URLCommand(
      command, timeLimit: access.stallTimeout ?? URLCommand.maximumTimeLimit
    ) { line, name in
      guard !isQuiet else { return }
      printToStandardError("httpfs: \(escapingControls("\(name): the URL command says: \(line)"))")
    }
  }

  func request(
    for entry: SessionEntry, to destination: Destination, _ access: Access,
    _ urlCommand: URLCommand?
  ) -> Request {
    // Not the entry's URL itself, which a session stores.
    var request = Request(url: access.url(entry.source.url), destination: destination)
    request.confidentialFields = access.fields(for: entry.source)
    request.mirrors = entry.source.mirrors.map(access.url)
    request.signer = urlCommand
    request.name = entry.path
    request.checksum = entry.source.checksum
    request.pieces = entry.source.pieces
    request.completeLength = entry.source.length
    request.rateLimit = RateLimit(
      bytesPerSecond: entry.source.rateLimit ?? fileRate.fileRateLimit?.bytesPerSecond)
    request.resumes = resume
    request.decodesContent = compressed
    request.setsModificationTime = remoteTime
    request.connections =
      connections.map { .exactly($0) } ?? .adaptive(upTo: adaptiveConnectionLimit)
    options.apply(access, to: &request)
    return request
  }

  // MARK: Fetching

  var queueConfiguration: TransferQueue.Configuration {
    var configuration = TransferQueue.Configuration()
    configuration.maximumConcurrent = jobs
    configuration.maximumPerHost = perHost
    configuration.stopsAtFailure = failFast
    return configuration
  }

  private func download(
    _ entries: [SessionEntry], _ session: SessionFile?, _ client: TransferClient, _ access: Access,
    _ urlCommand: URLCommand?, _ timeLimit: TimeLimit
  ) throws {
    let queue = TransferQueue(client: client, configuration: queueConfiguration)
    let entries = skipExisting ? entries.filter { !isSkipped($0) } : entries
    var jobs: [TransferRun.Job] = []
    for entry in entries {
      try TransferRun.endIfSignalled(at: jobs.count)
      jobs.append(
        TransferRun.Job(
          name: entry.shownName, url: access.url(entry.source.url), failure: entry.failure,
          nameSource: entry.nameSource))
    }
    let keeper = try session.map { try SessionKeeper($0, entries) }
    var output = TransferOutput(json: options.json, quiet: options.quiet)
    let outcome = TransferRun(
      queue: queue, isUpload: false, timeLimit: timeLimit.left
    ).run(
      jobs, output: &output,
      onChange: { board, isEnd in keeper?.keep(board, isEnd: isEnd) },
      transfer: { index in
        let entry = entries[index]
        return queue.add(request(for: entry, to: destination(of: entry), access, urlCommand))
      })
    if outcome.signal != nil {
      if outcome.cancelledCount > 0, !options.json, !options.quiet {
        let next = compressed ? "start over" : "resume"
        printToStandardError("httpfs: interrupted; run the same command again to \(next)")
      }
    }
    if outcome.isAbandoned { urlCommand?.end() }
    try outcome.endIfInterrupted()
    if let failure = keeper?.failure { throw failure }
    if let code = outcome.exitCode { throw code }
    if let failure = output.failure { throw failure }
  }

  private func destination(of entry: SessionEntry) -> Destination {
    guard entry.path != "/dev/null" else { return .discard }
    // A server must not choose which file --overwrite destroys.
    let replaces = options.overwrite && !entry.nameSource.isOfResponse
    return .file(
      entry.name, inside: entry.directory,
      existing: replaces ? .replace : skipExisting ? .keep : .replaceResult)
  }

  /// Whether the file already exists, which is reported to the user; not one that fails anyway.
  private func isSkipped(_ entry: SessionEntry) -> Bool {
    var status = stat()
    guard entry.failure == nil else { return false }
    guard stat(entry.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
    if !options.quiet {
      printToStandardError(escapingControls("\(entry.path): skipped: it is there already"))
    }
    return true
  }

  /// `-o -`: one connection, in order, as fast as standard output can be written.
  private func copyToStandardOutput(
    _ entries: [SessionEntry], _ client: TransferClient, _ access: Access,
    _ urlCommand: URLCommand?, _ timeLimit: TimeLimit
  ) throws {
    guard let entry = entries.first else { return }
    let transfer = client.transfer(request(for: entry, to: .stream(), access, urlCommand))
    try StandardOutputCopy(
      transfer, timeLimit: timeLimit.left, onAbandon: { urlCommand?.end() }
    ).run()
  }
}
