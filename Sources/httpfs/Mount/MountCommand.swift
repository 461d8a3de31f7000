import ArgumentParser
import CLinux
import DirectoryListing
import Dispatch
import FUSEMount
import Glibc
import HTTPTransfer
import HTTPTransferCore
import LinuxSystem
import Logging
import RangeCache
import RemoteFileSystem
import RemoteFiles
import SourceList
import TextFormat

/// `httpfs mount [options] SOURCE… MOUNTPOINT`.
struct MountCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mount",
    abstract: "Mount the files of lists and URLs.",
    usage: "httpfs mount [<options>] <source> ... <mountpoint>",
    discussion: """
      For example: httpfs mount --daemon https://example.org/big.iso ~/remote

      A source is a list file, '-' for standard input, a URL, or '@NAME' of the configuration file. \
      A URL that ends in '/' is a directory with the files of the server's listing.
      Runs in the foreground until SIGTERM, SIGINT or an unmount; SIGHUP reads the list again.
      """)

  @Argument(
    help: "The sources, then the mount point, which '@NAME' may have.", completion: .file())
  var paths: [String]

  private var sources: [String] { Array(paths.dropLast()) }
  private var mountpoint: String { paths.last ?? "" }

  @Option(
    help: ArgumentHelp(
      "The cache directory (default: one for these sources below ~/.cache/httpfs/mounts).",
      valueName: "dir"), completion: .directory)
  var cacheDir: String?

  @Option(help: ArgumentHelp("Connections per file (default: adaptive).", valueName: "n"))
  var connections: Int?

  @Flag(
    name: [.long, .customLong("background")],
    help: "Return when the mount is ready, and continue in the background.")
  var daemon = false

  @Flag(name: [.short, .long], help: "Stay in the foreground, which is the default.")
  var foreground = false

  @Flag(
    name: .customLong("check"), inversion: .prefixedNo,
    help: "Ask the server of a URL before mounting it, for at most 5 s.")
  var checksSources = true

  @Option(
    name: .customShort("o"),
    help: ArgumentHelp(
      "Options without their dashes, separated by commas, as for mount(8): allow_other,cache-size=20G.",
      valueName: "options"))
  var mountOptions: [String] = []

  @Flag(name: .customLong("read-only"), help: "Mount read-only, which every mount is.")
  var isReadOnly = false

  @Option(
    help: ArgumentHelp(
      "Time limit of a read or open, also while a server restarts: 90, 5s, 2m, 1h.",
      valueName: "time"))
  var readTimeout = TimeSpan(seconds: 60)

  @Option(
    help: ArgumentHelp(
      "How long to ask a server that cannot be reached, or fails, for a file of which nothing is known.",
      valueName: "time"))
  var firstAnswerTimeout = TimeSpan(seconds: 5)

  @Option(
    help: ArgumentHelp(
      "How long a server must be unreachable before reads fail without waiting for it.",
      valueName: "time"))
  var outageTimeout = TimeSpan(seconds: 60)

  @Option(
    help: ArgumentHelp(
      "How long to trust a server's answer about a file before an open asks again.",
      valueName: "time"))
  var revalidate = TimeSpan(seconds: 1)

  @Option(
    help: ArgumentHelp(
      "How long to use a directory listing before asking the server for it again.",
      valueName: "time"))
  var listingTTL = TimeSpan(seconds: 60)

  @Flag(
    inversion: .prefixedNo,
    help: "Show exact sizes and times of a listing until a file is opened.")
  var listingSizes = true

  @Option(
    help: ArgumentHelp(
      "A name to hide from listings and never request, in addition to those that desktops look for "
        + "(.Trash, .hidden, autorun.inf, desktop.ini, …); may be repeated.", valueName: "name"))
  var noIndex: [String] = []

  @Option(
    help: ArgumentHelp(
      "Evict the least recently used files above this size; K, M, G and T may follow.",
      valueName: "bytes"))
  var cacheSize: ByteSize?

  @OptionGroup var rate: RateLimitOption

  @OptionGroup var fileRate: FileRateLimitOption

  @Flag(help: "Let other users access the mount.")
  var allowOther = false

  @Option(
    help: ArgumentHelp(
      "Owner of the files (default: the mounting user).", valueName: "number"))
  var uid: UInt32?

  @Option(
    help: ArgumentHelp(
      "Group of the files (default: that of the mounting user).", valueName: "number")
  )
  var gid: UInt32?

  @Option(
    name: .customLong("umask"),
    help: ArgumentHelp(
      "Permissions to remove, octal: 077 hides the files from other users.",
      valueName: "mask"))
  var permissionMask: PermissionMask = .none

  @Flag(name: .customLong("noexec"), help: "Do not allow programs in the mount to be executed.")
  var forbidsExecution = false

  @Flag(help: "Keep host and path of each URL as directories.")
  var tree = false

  @Option(
    help: ArgumentHelp(
      "Source name that findmnt and df show (default: the source).", valueName: "name"))
  var fsname: String?

  @Option(
    help: ArgumentHelp(
      "Log level: trace, debug, info, notice, warning, error or critical.", valueName: "level"))
  var logLevel: LogLevel = .warning

  @Flag(name: [.customShort("v"), .customLong("verbose")], help: "Log at the level info.")
  var isVerbose = false

  @Flag(name: [.customShort("d"), .customLong("debug")], help: "Log at the level debug.")
  var isDebugging = false

  @Option(
    help: ArgumentHelp(
      "Append the log to a file, reopened on SIGHUP (default: standard error; with --daemon the system's log).",
      valueName: "file"), completion: .file())
  var logFile: String?

  @Option(
    help: ArgumentHelp(
      "Record opens and reads for 'httpfs replay'; the kernel then reads no file directly.",
      valueName: "file"), completion: .file())
  var trace: String?

  @OptionGroup var location: URLCommandOptions

  @OptionGroup(title: "Access") var access: AccessOptions

  @OptionGroup var configuration: ConfigurationOptions

  func validate() throws {
    guard paths.count >= 2 else {
      throw ValidationError(
        "name the sources (lists or URLs) and then the mount point: "
          + "httpfs mount SOURCE… MOUNTPOINT")
    }
    if mountpoint.contains("://") {
      throw ValidationError(
        "the last argument is the mount point, and it is a URL; name a directory after the sources")
    }
    if foreground, daemon {
      throw ValidationError("--foreground and --daemon exclude each other")
    }
    // (uid_t)-1 means "no user" to the system.
    if uid == UInt32.max || gid == UInt32.max {
      throw ValidationError("--uid and --gid are below 4294967295")
    }
    if let connections, !(1...64).contains(connections) {
      throw ValidationError("--connections must be from 1 to 64")
    }
    for (name, time) in [
      ("--read-timeout", readTimeout), ("--first-answer-timeout", firstAnswerTimeout),
      ("--outage-timeout", outageTimeout),
    ] where !(time.seconds > 0 && time.seconds <= 86_400) {
      throw ValidationError("\(name) must be above 0 and at most 86400 seconds")
    }
    if let cacheSize, cacheSize.byteCount < 1 << 20 {
      let text = humanBytes(cacheSize.byteCount)
      throw ValidationError(
        "--cache-size is \(text), and must be at least 1 MiB; K, M, G and T after the number are "
          + "units")
    }
    // Characters with a meaning in FUSE's options and in the kernel's table.
    if let fsname,
      fsname.isEmpty || fsname.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
        || fsname.contains(where: { ",\\\"".contains($0) })
    {
      throw ValidationError("--fsname must be a name without commas, quotes and backslashes")
    }
  }

  func run() throws {
    try reportingFailure {
      if daemon, !DaemonProcess.isDaemon { return try DaemonProcess.start() }
      try mount()
    }
  }

  private func mount() throws {
    // Before other threads start, because threads inherit the mask.
    let signals = ProcessSignals()
    let serviceManager = ServiceManager()
    umask(0o077)
    // Each file may need a descriptor.
    ProcessCalls.raiseDescriptorLimit()

    let list = try loadSources(sources, tree: tree)
    printWarnings(of: list)
    let access = try Access(self.access, refusesReserved: true)
    let sources = mountSources(of: list, access)
    let place = try MountPoint(mountpoint)
    let directory = place.path
    let log = try LogDestination(file: logFile)
    let logger = log.logger(level: isDebugging ? .debug : isVerbose ? .info : logLevel.level)
    var settings = FileSettings(
      connections: connections, readTimeout: readTimeout.duration,
      revalidationInterval: revalidate.duration, listingTimeToLive: listingTTL.duration)
    settings.firstAnswerTimeout = firstAnswerTimeout.duration
    settings.outageTimeout = outageTimeout.duration
    settings.connectTimeout = access.connectTimeout
    settings.believesListings = listingSizes
    settings.hiddenNames = HiddenNames(noIndex)
    settings.fileRateLimit = fileRate.fileRateLimit?.bytesPerSecond
    if let timeout = access.stallTimeout { settings.stallTimeout = timeout }
    let urlCommand = makeURLCommand(logger: logger)
    settings.signer = urlCommand
    if !access.configuration.verifiesServers {
      logger.warning("https servers are not verified (--insecure)")
    }
    var client = access.configuration
    client.rateLimit = rate.rateLimit?.bytesPerSecond
    let (cache, isNewCache) = try endingAtOnce(on: signals, urlCommand) {
      () throws(CommandFailure) in try openCache(for: list, at: directory)
    }
    var isMounted = false
    // A mount that fails leaves no empty cache.
    defer { if !isMounted, isNewCache { cache.removeIfEmpty() } }
    let environment = FileEnvironment(
      client: ExchangeClient(configuration: client), cache: cache, settings: settings,
      cacheByteLimit: cacheSize?.byteCount, logger: logger)
    environment.trimCache()
    let recorder = try makeTraceRecorder(logger: logger)
    let tree = FileTree(sources: sources, environment: environment)
    do throws(CommandFailure) {
      try endingAtOnce(on: signals, urlCommand) { () throws(CommandFailure) in
        try check(tree, isService: serviceManager.isPresent)
      }
    } catch {
      urlCommand?.end()
      throw error
    }
    let fileSystem = FileSystem(
      mountpoint: directory, tree: tree,
      environment: environment, ownership: ownership, trace: recorder)
    let session: MountSession
    do throws(MountError) {
      session = try MountSession(
        fileSystem,
        options: .init(
          allowOther: allowOther, forbidsExecution: forbidsExecution,
          sourceName: fsname ?? ShownSource.name(of: self.sources)))
    } catch {
      urlCommand?.end()
      throw CommandFailure("\(error)")
    }
    isMounted = true
    if place.hidesFiles {
      printToStandardError(
        Journal.marked(
          "httpfs: warning: '\(escapingControls(mountpoint))' is not empty; its files are hidden "
            + "until you unmount", as: .warning))
    }
    let watchdog = startWatchdog(of: directory, logFile: log.file, logger: logger)
    let reload = ListReload(sources: self.sources, tree: self.tree, access: access)
    // SIGHUP and the command `refresh` of .control.
    fileSystem.onReload(hasList: reload.hasList) { [weak fileSystem] in
      guard let fileSystem else { return nil }
      serviceManager.notify(.reloading)
      var outcome = "list not reloaded, it has errors (see the log); old list"
      var refusal: String?
      do throws(ListReload.Refusal) {
        outcome = try reload.perform(on: fileSystem, logger: logger)
      } catch {
        refusal = error.reason
      }
      serviceManager.notify(.ready(status: "\(outcome) at \(directory)"))
      return refusal
    }
    if DaemonProcess.isDaemon { chdir("/") }
    // Do not use exit(3): other threads may still run while libraries clean up. Logs and standard
    // output are not buffered.
    let finish: @Sendable () -> Never = {
      urlCommand?.end()
      _ = recorder?.flush(within: .seconds(2))
      watchdog?.dismiss()
      _exit(0)
    }
    let logQueue = DispatchQueue(label: "httpfs.log")
    let delivery = signals.deliver(
      onEnd: { _ in
        serviceManager.notify(.stopping)
        session.stop(finish: finish)
      },
      onReload: {
        // The messages of the reload go to the new file. Nothing else waits for the disk of the
        // log, and the log for no other disk.
        logQueue.async { [weak fileSystem] in
          log.reopen(complainingTo: logger)
          fileSystem?.reloadList()
        }
      })
    let line = "mounted \(mountpoint) (\(sources.summary))\n"
    withExtendedLifetime(delivery) {
      session.serve(
        whenReady: {
          serviceManager.notify(.ready(status: "\(sources.summary) at \(directory)"))
          // The mount works even if no program reads standard output.
          _ = try? printToStandardOutput(Array(line.utf8))
          if DaemonProcess.isDaemon { DaemonProcess.detach() }
        }, finish: finish)
    }
  }

  /// How long a server may take to answer before its URL is mounted anyway.
  private static let checkTimeout = Duration.seconds(6)

  /// Asks the servers of URLs on the command line.
  ///
  /// - Throws: ``CommandFailure`` if the only source cannot work. Of several, each failure is a
  ///   warning.
  private func check(_ tree: FileTree, isService: Bool) throws(CommandFailure) {
    guard checksSources, !isService, sources.allSatisfy({ $0.contains("://") }) else { return }
    let failures = tree.failures(within: Self.checkTimeout)
    let messages = failures.map { failure in
      "\(failure.url.redacted): \(failure.error.advisedReason)"
    }
    if sources.count == 1, !messages.isEmpty {
      throw CommandFailure(
        messages: zip(messages, failures).map { message, failure in
          escapingControls(message)
            + (failure.error.mayPass ? "; or mount it anyway with --no-check" : "")
        })
    }
    for message in messages {
      printToStandardError(
        Journal.marked("httpfs: warning: \(escapingControls(message))", as: .warning))
    }
  }

  private func makeURLCommand(logger: Logger) -> URLCommand? {
    guard let command = location.urlCommand else { return nil }
    return URLCommand(command, timeLimit: readTimeout.duration) { line, name in
      logger.warning("the URL command says", metadata: ["file": "\(name)", "line": "\(line)"])
    }
  }

  /// The minimum time without an answer after which we assume that a daemon hangs: on a busy
  /// machine, an answer may take seconds.
  private static let minimumTimeout = Duration.seconds(10)

  /// Starts the process that ends the mount if this process no longer can; nil, with a warning, if
  /// that fails, because the mount works without it.
  private func startWatchdog(
    of mountpoint: String, logFile: String?, logger: Logger
  ) -> Watchdog? {
    do throws(ErrorNumber) {
      guard let mount = MountTable.currentMount(at: mountpoint) else {
        throw ErrorNumber(rawValue: ENOENT)
      }
      // Programs are promised that a read ends by the read timeout, so the watchdog must keep that
      // promise too.
      return try Watchdog(
        of: mount, timeout: max(Self.minimumTimeout, readTimeout.duration),
        logFile: logFile)
    } catch {
      logger.warning(
        "no watchdog: a hung mount must be unmounted by hand", metadata: ["error": "\(error)"])
      return nil
    }
  }

  private var ownership: FileOwnership {
    let own = FileOwnership.ofThisProcess
    return FileOwnership(
      userID: uid ?? own.userID, groupID: gid ?? own.groupID, mask: permissionMask.bits)
  }

  /// Runs `body`, which may wait; a signal meanwhile ends the process.
  private func endingAtOnce<Result>(
    on signals: ProcessSignals, _ urlCommand: URLCommand?,
    _ body: () throws(CommandFailure) -> Result
  ) throws(CommandFailure) -> Result {
    let delivery = signals.deliver(
      onEnd: { number in
        urlCommand?.end()
        _exit(128 + number)
      }, onReload: {})
    defer { withExtendedLifetime(delivery) {} }
    return try body()
  }

  /// The cache, and whether it was created for this mount.
  private func openCache(
    for list: SourceList, at mountpoint: String
  ) throws(CommandFailure) -> (cache: CacheDirectory, isNew: Bool) {
    guard let path = cacheDir ?? defaultCacheDirectory(ofSources: sources, list: list) else {
      throw CommandFailure("no home directory for the cache; name one with --cache-dir")
    }
    let isNew = Glibc.access(path, F_OK) != 0
    do throws(CacheError) {
      return (try openCacheDirectory(path, mountpoint: escapingControls(mountpoint)), isNew)
    } catch {
      throw CommandFailure(escapingControls("\(error)"))
    }
  }

  private func makeTraceRecorder(logger: Logger) throws(CommandFailure) -> TraceRecorder? {
    guard let trace else { return nil }
    let descriptor: Int32
    do throws(OwnFile.Refusal) {
      descriptor = try OwnFile.open(trace, O_RDWR | O_CREAT | O_NONBLOCK)
    } catch {
      throw CommandFailure("cannot write trace '\(trace)': \(error)")
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      close(descriptor)
      throw CommandFailure("cannot write trace '\(trace)'", .last)
    }
    if status.st_mode & S_IFMT == S_IFREG {
      // Replace only an earlier trace: never a list, for example, or another user's file.
      let heading = Array("# httpfs access trace".utf8)
      var start = [UInt8](repeating: 0, count: heading.count)
      let count = pread(descriptor, &start, start.count, 0)
      guard status.st_uid == geteuid(), count == 0 || start == heading,
        ftruncate(descriptor, 0) == 0
      else {
        close(descriptor)
        throw CommandFailure(
          "'\(trace)' is not a trace file that you own; httpfs leaves it unchanged; name another file"
        )
      }
    }
    return TraceRecorder(descriptor: descriptor, logger: logger)
  }
}

/// The list's entries as sources of files and directories, with the fields and credentials of the
/// options.
func mountSources(of list: SourceList, _ access: Access) -> MountSources {
  var sources = MountSources()
  sources.files.reserveCapacity(list.entries.count)
  for entry in list.entries {
    let fields = access.fields(for: entry)
    let url = access.url(entry.url)
    if entry.isListing {
      sources.listings.append(
        ListingSource(path: entry.path, url: url, fields: fields))
    } else {
      let details = SourceDetails(
        mirrors: entry.mirrors.map(access.url), checksum: entry.checksum, pieces: entry.pieces,
        length: entry.length, rateLimit: entry.rateLimit)
      sources.files.append(
        FileSource(path: entry.path, url: url, fields: fields, details: details))
    }
  }
  return sources
}

extension MountSources {
  /// `3 files`, `1 listing` or `3 files, 1 listing`.
  var summary: String {
    func count(_ number: Int, _ noun: String) -> String {
      "\(number) \(noun)\(number == 1 ? "" : "s")"
    }
    var parts: [String] = []
    if !files.isEmpty || listings.isEmpty { parts.append(count(files.count, "file")) }
    if !listings.isEmpty { parts.append(count(listings.count, "listing")) }
    return parts.joined(separator: ", ")
  }
}

/// `Logger.Level` on the command line.
enum LogLevel: String, CaseIterable, ExpressibleByArgument {
  case trace, debug, info, notice, warning, error, critical

  var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .warning }
}
