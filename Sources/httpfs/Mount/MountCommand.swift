import ArgumentParser
import CLinux
import DirectoryListing
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

/// `httpfs mount [options] SOURCE MOUNTPOINT`.
struct MountCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mount",
    abstract: "Mount the files of a list, or of one URL.",
    discussion: """
      A URL that ends in '/' is a directory with the files of the server's listing.
      Runs in the foreground until SIGTERM, SIGINT or an unmount; SIGHUP reads the list again.
      """)

  @Argument(
    help: "A list file, '-' for standard input, one URL, or '@NAME' of the configuration file.",
    completion: .file())
  var source: String

  @Argument(
    help: "The mount point; optional if '@NAME' has one.", completion: .directory)
  var mountpoint: String

  @Option(
    help: ArgumentHelp(
      "The cache directory (default: $XDG_CACHE_HOME/httpfs or ~/.cache/httpfs).",
      valueName: "dir"), completion: .directory)
  var cacheDir: String?

  @Option(help: ArgumentHelp("Connections per file (default: adaptive).", valueName: "n"))
  var connections: Int?

  @Flag(help: "Return when the mount is ready, and continue in the background.")
  var daemon = false

  @Option(help: ArgumentHelp("Time limit of a read.", valueName: "seconds"))
  var readTimeout: Double = 60

  @Option(
    help: ArgumentHelp(
      "How long to trust a server's answer about a file before an open asks again.",
      valueName: "seconds"))
  var revalidate: Double = 1

  @Option(
    help: ArgumentHelp(
      "How long to use a directory listing before asking the server for it again.",
      valueName: "seconds"))
  var listingTTL: Double = 60

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
    help: ArgumentHelp("Source name that findmnt and df show (default: httpfs).", valueName: "name")
  )
  var fsname: String?

  @Option(
    help: ArgumentHelp(
      "Log level: trace, debug, info, notice, warning, error or critical.", valueName: "level"))
  var logLevel: LogLevel = .warning

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
    // (uid_t)-1 means "no user" to the system.
    if uid == UInt32.max || gid == UInt32.max {
      throw ValidationError("--uid and --gid are below 4294967295")
    }
    if let connections, !(1...64).contains(connections) {
      throw ValidationError("--connections must be from 1 to 64")
    }
    guard readTimeout > 0, readTimeout <= 86_400 else {
      throw ValidationError("--read-timeout must be above 0 and at most 86400 seconds")
    }
    guard revalidate >= 0, revalidate <= 1e9 else {
      throw ValidationError("--revalidate must be 0 or more seconds")
    }
    guard listingTTL >= 0, listingTTL <= 1e9 else {
      throw ValidationError("--listing-ttl must be 0 or more seconds")
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

    let list = try loadSource(source, tree: tree, allowsListings: true)
    printWarnings(of: list)
    let access = try Access(self.access, refusesReserved: true)
    let sources = mountSources(of: list, access)
    let directory = try MountPoint.prepare(mountpoint)
    let log = try LogDestination(file: logFile)
    let logger = log.logger(level: logLevel.level)
    var settings = FileSettings(
      connections: connections, readTimeout: .seconds(readTimeout),
      revalidationInterval: .seconds(revalidate), listingTimeToLive: .seconds(listingTTL))
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
    let environment = FileEnvironment(
      client: TransferClient(configuration: client), cache: try openCache(),
      settings: settings,
      cacheByteLimit: cacheSize?.byteCount, logger: logger)
    environment.trimCache()
    let recorder = try makeTraceRecorder(logger: logger)
    let fileSystem = FileSystem(
      mountpoint: directory, tree: FileTree(sources: sources, environment: environment),
      environment: environment, ownership: ownership, trace: recorder)
    let session: MountSession
    do throws(MountError) {
      session = try MountSession(
        fileSystem,
        options: .init(
          allowOther: allowOther, forbidsExecution: forbidsExecution,
          sourceName: fsname ?? "httpfs"))
    } catch {
      throw CommandFailure("\(error)")
    }
    let watchdog = startWatchdog(of: directory, logFile: log.file, logger: logger)
    let reload = ListReload(source: source, tree: tree, access: access)
    // SIGHUP and the command `refresh` of .control.
    fileSystem.onReload { [weak fileSystem] in
      guard let fileSystem else { return }
      serviceManager.notify(.reloading)
      let outcome = reload.perform(on: fileSystem, logger: logger)
      serviceManager.notify(.ready(status: "\(outcome) at \(directory)"))
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
    let delivery = signals.deliver(
      onEnd: {
        serviceManager.notify(.stopping)
        session.stop(finish: finish)
      },
      onReload: {
        // Queued before the reload, so that its messages go to the new file. The disk may be slow,
        // and the next signal must not wait for it.
        environment.background { log.reopen(complainingTo: logger) }
        fileSystem.reloadList()
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

  private func makeURLCommand(logger: Logger) -> URLCommand? {
    guard let command = location.urlCommand else { return nil }
    return URLCommand(command, timeLimit: .seconds(readTimeout)) { line, name in
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
        of: mount, timeout: max(Self.minimumTimeout, .seconds(readTimeout)),
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

  private func openCache() throws(CommandFailure) -> CacheDirectory {
    guard let path = cacheDir ?? defaultCacheDirectory() else {
      throw CommandFailure("no home directory for the cache; name one with --cache-dir")
    }
    do throws(CacheError) {
      return try CacheDirectory(path: path)
    } catch {
      throw CommandFailure("\(error)")
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
          "'\(trace)' is no trace of yours: it is left as it is; name another file")
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
