internal import CFuse
internal import CPassthrough
internal import Glibc
internal import HTTPTransfer
internal import Logging
internal import MountStatus
internal import RemoteFiles
internal import Synchronization

/// A session of libfuse.
///
/// `@unchecked Sendable`: libfuse's session functions that are used on other threads than the
/// loop's (exit, fd) are safe there; the pointer lives as long as the process.
struct SessionPointer: @unchecked Sendable {
  let pointer: OpaquePointer
  var offersPassthrough: Bool
}

/// Why a mount could not be made or did not end well; one line that says what to do.
public struct MountError: Error, Sendable, CustomStringConvertible {
  public let description: String

  public init(_ description: String) { self.description = description }
}

/// Mounts a file system, serves it until it is unmounted, and takes it down.
public final class MountSession: Sendable {
  public struct Options: Sendable {
    /// Whether other users may look into the mount.
    public var allowOther: Bool
    /// Whether programs of the mount are not to be run.
    public var forbidsExecution: Bool
    /// The source in the kernel's table of mounts, which everybody can read; without `,` and `\`.
    public var sourceName: String

    public init(
      allowOther: Bool = false, forbidsExecution: Bool = false, sourceName: String = "httpfs"
    ) {
      self.allowOther = allowOther
      self.forbidsExecution = forbidsExecution
      self.sourceName = sourceName
    }
  }

  /// More threads than cores: a thread may wait for the disk under the cache, never for the network.
  private static let threadCount: UInt32 = 8

  /// What one read of the kernel's read-ahead brings, in KiB: four times the default of 128, which
  /// measured 1.4 times the throughput of spliced reads (DESIGN facts).
  fileprivate static let readAheadKiB = 512

  private let fileSystem: FileSystem
  private let session: SessionPointer
  private let loopThread = Mutex<pthread_t?>(nil)
  private let hasEnded = Atomic<Bool>(false)

  /// Mounts `fileSystem`; the kernel's requests wait until ``serve(whenReady:)`` is called.
  ///
  /// - Throws: ``MountError`` where the kernel or fusermount3 refuses.
  public init(_ fileSystem: FileSystem, options: Options) throws(MountError) {
    self.fileSystem = fileSystem
    let mountOptions =
      "fsname=\(options.sourceName),subtype=httpfs,nosuid,nodev,default_permissions"
      + (options.allowOther ? ",allow_other" : "")
      + (options.forbidsExecution ? ",noexec" : "")
    let context = Unmanaged.passUnretained(fileSystem).toOpaque()
    guard
      let pointer = Self.newSession(arguments: ["httpfs", "-o", mountOptions], context: context)
    else {
      throw MountError(
        "libfuse refuses the mount options '\(mountOptions)' and says why above; check --fsname")
    }
    let isRoot = geteuid() == 0
    guard fuse_session_mount(pointer, fileSystem.mountpoint) == 0 else {
      fuse_session_destroy(pointer)
      throw MountError(
        "cannot mount at '\(fileSystem.mountpoint)': libfuse says why above; "
          + "'httpfs doctor' checks the usual causes")
    }
    // Backing files need CAP_SYS_ADMIN; an ordinary user's daemon splices.
    let offers = httpfs_passthrough_install(pointer, isRoot) == 0 && isRoot
    session = SessionPointer(pointer: pointer, offersPassthrough: offers)
    let session = session
    fileSystem.session.withLock { $0 = session }
  }

  private static func newSession(
    arguments: [String], context: UnsafeMutableRawPointer
  ) -> OpaquePointer? {
    var list = fuse_args(argc: 0, argv: nil, allocated: 0)
    defer { fuse_opt_free_args(&list) }
    for argument in arguments { fuse_opt_add_arg(&list, argument) }
    var operations = FileSystem.operations()
    return fuse_session_new(
      &list, &operations, MemoryLayout<fuse_lowlevel_ops>.size, context)
  }

  /// Serves the mount on this and other threads until it is unmounted or ``stop()`` is called,
  /// then takes it down.
  ///
  /// - Parameter whenReady: called when the kernel has taken up the connection: from then on reads
  ///   are answered.
  public func serve(whenReady: @escaping @Sendable () -> Void) {
    fileSystem.onReady.withLock { $0 = whenReady }
    loopThread.withLock { $0 = pthread_self() }
    let code = httpfs_session_loop(session.pointer, Self.threadCount)
    hasEnded.store(true, ordering: .releasing)
    if code < 0 {
      fileSystem.environment.logger.error(
        "the FUSE session ended", metadata: ["errno": "\(-code)"])
    }
    takeDown()
  }

  /// Ends ``serve(whenReady:)``; from any thread.
  public func stop() {
    fuse_session_exit(session.pointer)
    // The loop looks at the exit flag when its semaphore is interrupted; the signal may come just
    // before it waits, hence again and again.
    for _ in 0..<100 where !hasEnded.load(ordering: .acquiring) {
      if let thread = loopThread.withLock({ $0 }) { pthread_kill(thread, SIGUSR1) }
      usleep(20_000)
    }
  }

  private func takeDown() {
    fileSystem.abandon()
    fuse_session_unmount(session.pointer)
    let client = fileSystem.environment.client
    fileSystem.environment.finishFirstBytes()
    client.cancelAll()
    // Bounded: transfers end at once when cancelled, and nothing depends on the last one.
    for _ in 0..<100 where client.activeExchangeCount > 0 { usleep(20_000) }
    fileSystem.environment.finishReplies()
    fileSystem.environment.finishListings()
    fileSystem.environment.commitEverything()
  }
}

extension FileSystem {
  /// The kernel has taken up the connection; called on a libfuse thread.
  func kernelIsReady() {
    onReady.withLock { $0 }?()
  }

  /// Lets the kernel read ahead in larger requests, where this process may (root).
  ///
  /// Not before the first open: when it takes the reply to INIT, the kernel sets what it had offered.
  func raiseReadAheadOnce() {
    guard !hasRaisedReadAhead.exchange(true, ordering: .relaxed), geteuid() == 0,
      let mount = MountTable.current()?.mount(at: mountpoint)
    else { return }
    let descriptor = Glibc.open(
      "/sys/class/bdi/\(mount.device)/read_ahead_kb", O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = "\(MountSession.readAheadKiB)".withCString { write(descriptor, $0, strlen($0)) }
    close(descriptor)
  }
}
