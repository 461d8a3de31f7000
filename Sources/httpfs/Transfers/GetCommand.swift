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

      The options -c -nc -N -O -J -P -l -s -f -S -k -L -R -np -nH -nd of curl and wget, and -d \
      of aria2, are understood.

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
    if session?.split(separator: "/").last?.utf8.contains(".httpfs-".utf8) == true {
      throw ValidationError("--session needs a name without '.httpfs-', as partial files have it")
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
      // A warning about a list may find nobody to read it.
      signal(SIGPIPE, SIG_IGN)
      let timeLimit = TimeLimit(options.maxTime?.duration)
      // Pipes and terminals are read before signals are blocked: until then, Ctrl-C ends the
      // process.
      let ofCommand = try loadEntries(until: timeLimit.end)
      let checksums = try checksumFile.map { path throws(CommandFailure) in
        try ChecksumFile(path: path, until: timeLimit.end)
      }
      TransferRun.blockSignals()
      let session = try session.map { path throws(CommandFailure) in try SessionFile(path: path) }
      // No error: the option may be a setting of the configuration file.
      if output != nil, ofCommand.isEmpty, !options.quiet {
        printToStandardError(
          "httpfs: warning: --output is not used: the files of a session keep their places")
      }
      let named = try session?.merged(with: ofCommand, warns: !options.quiet) ?? ofCommand
      var connectionsPerHost = 64
      if let connections { connectionsPerHost = max(64, connections * jobs) }
      let access = try Access(options.access)
      let client = options.makeClient(access, maximumConnectionsPerHost: connectionsPerHost)
      let urlCommand = makeURLCommand(access)
      defer { urlCommand?.end() }
      let entries: [SessionEntry]
      do {
        let files = try expanded(named, client, access, timeLimit)
        entries = try planned(
          withNames(files, client, access, urlCommand, timeLimit), session, checksums)
        if !options.quiet { Self.reportNamesOfURLs(entries) }
      } catch {
        if let code = error as? ExitCode, code.rawValue > 128, !options.json, !options.quiet {
          printToStandardError(
            "httpfs: interrupted before the first download; run the same command again"
              + (session == nil ? "" : ": the session is as it was"))
        }
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

  /// The files and listings of the command line and the lists.
  private func loadEntries(
    until end: ContinuousClock.Instant?
  ) throws(CommandFailure) -> [SessionEntry] {
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
    var listed: [SourceEntry] = []
    for list in lists {
      let loaded = try loadSource(
        list, tree: tree, listings: recursion.recursive ? .always : .unnamed, naming: naming,
        until: end)
      if !options.quiet { printWarnings(of: loaded) }
      listed += loaded.entries
    }
    // A URL that a list repeats with the same name is one file. The list says all about it: beside
    // lists, no option is about one URL.
    func key(_ entry: SourceEntry) -> [PathKey] { [PathKey(entry.url.text), PathKey(entry.path)] }
    let keys = Set(listed.map(key))
    entries.removeAll { keys.contains(key($0.source)) }
    return placed(entries + listed.map { SessionEntry($0) })
  }

  /// The entries with the files of their listings; without `--recursive`, listings fail.
  private func expanded(
    _ entries: [SessionEntry], _ client: TransferClient, _ access: Access, _ timeLimit: TimeLimit
  ) throws -> [SessionEntry] {
    guard recursion.recursive else {
      return entries.map { entry in
        var entry = entry
        if entry.source.isListing { entry.fail(.isDirectory) }
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
      if access(url, F_OK) == 0 {
        throw CommandFailure(
          "'\(Self.showable(url))' is a file, and no URL: a list needs -i before its name")
      }
      throw CommandFailure("'\(Self.showable(url))': malformed URL: \(error)")
    } catch is SourceListError {
      throw CommandFailure(Self.noName(url))
    } catch {
      throw CommandFailure("'\(Self.showable(url))': \(error)")
    }
  }

  /// The entries of the command with the places of `--output`.
  private func placed(_ entries: [SessionEntry]) -> [SessionEntry] {
    let file = isOutputFile ? output : nil
    return entries.map { entry in
      var entry = entry
      if let file { entry.place(at: file) } else { entry.place(in: output ?? ".") }
      return entry
    }
  }

  /// The entries with their checksums, and with the failures of those that have no place.
  private func planned(
    _ entries: [SessionEntry], _ session: SessionFile?, _ checksums: ChecksumFile?
  ) throws -> [SessionEntry] {
    var plan = try DownloadPlan(entries, tree: tree)
    if let checksums { try plan.addChecksums(of: checksums) }
    try plan.failDuplicates()
    if let session { try plan.failObstacles(of: session) }
    return plan.entries
  }

  /// Whether `--output` names the one file, not a directory.
  var isOutputFile: Bool {
    guard let output, isOneFile else { return false }
    return output == "-" || (!output.hasFinalSlash && !isDirectory(output))
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
    // A server must not choose whose progress is destroyed.
    request.keepsOtherDownloads = entry.nameSource.isOfResponse
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
