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

  /// What one read of the kernel's read-ahead brings, in KiB: four times the default of 128, which
  /// measured 1.4 times the throughput of spliced reads (DESIGN facts).
  fileprivate static let readAheadKiB = 512

  private let fileSystem: FileSystem
  private let session: SessionPointer
  /// The mount's device, MAJOR:MINOR; nil where the kernel does not list it.
  private let device: String?
  private let loopThread = Mutex<pthread_t?>(nil)
  private let hasEnded = Atomic<Bool>(false)
  private let isTakenDown = Atomic<Bool>(false)

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
    let code = httpfs_passthrough_install(pointer, isRoot)
    guard code == 0 else {
      fuse_session_unmount(pointer)
      fuse_session_destroy(pointer)
      throw MountError(
        "cannot prepare the FUSE device: \(String(cString: strerror(-code))); is there a /dev/null?"
      )
    }
    session = SessionPointer(pointer: pointer, offersPassthrough: isRoot)
    device = MountTable.current()?.mount(at: fileSystem.mountpoint)?.device
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

  /// Serves the mount on this and other threads until it is unmounted or ``stop(finish:)`` is called,
  /// then takes it down.
  ///
  /// - Parameters:
  ///   - whenReady: called when the kernel has taken up the connection: from then on reads are answered.
  ///   - finish: ends the process, for which it must not wait for any thread: some may still be at work,
  ///     at a hash or for a slow disk.
  public func serve(whenReady: @escaping @Sendable () -> Void, finish: () -> Never) -> Never {
    fileSystem.onReady.withLock { $0 = whenReady }
    loopThread.withLock { $0 = pthread_self() }
    let code = httpfs_session_loop(session.pointer, UInt32(FileSystem.threadCount))
    hasEnded.store(true, ordering: .releasing)
    if code < 0 {
      fileSystem.environment.logger.error(
        "the FUSE session ended", metadata: ["errno": "\(-code)"])
    }
    takeDown(finish)
  }

  /// Ends ``serve(whenReady:finish:)``, from any thread.
  ///
  /// Where that does not end, takes the mount down and calls `finish`.
  public func stop(finish: () -> Never) {
    fuse_session_exit(session.pointer)
    // The loop looks at the exit flag when its semaphore is interrupted; the signal may come just
    // before it waits, hence again and again.
    for _ in 0..<100 where !hasEnded.load(ordering: .acquiring) {
      if let thread = loopThread.withLock({ $0 }) { pthread_kill(thread, SIGUSR1) }
      usleep(20_000)
    }
    guard !hasEnded.load(ordering: .acquiring) else { return }
    // A thread of libfuse waits for the disk under the cache, and the loop for the thread.
    fileSystem.environment.logger.error(
      "the mount ends although the disk of its cache does not answer")
    takeDown(finish)
  }

  /// Takes the mount down and ends the process; whoever comes second waits for that.
  private func takeDown(_ finish: () -> Never) -> Never {
    while isTakenDown.exchange(true, ordering: .acquiringAndReleasing) { pause() }
    fileSystem.abandon()
    // Replies of other threads go to /dev/null from now on, never to a file that reuses the number.
    let hasEnded = httpfs_session_close(session.pointer)
    // If it had ended before, somebody has unmounted or aborted it: ENOTCONN must stay then.
    if !hasEnded { detach() }
    fileSystem.environment.end()
    finish()
  }

  /// Takes the mount out of the file tree, open files or not.
  private func detach() {
    // Where it has been detached before, somebody else's mount may be in its place.
    guard let device, MountTable.current()?.mount(at: fileSystem.mountpoint)?.device == device,
      umount2(fileSystem.mountpoint, Int32(MNT_DETACH) | Int32(UMOUNT_NOFOLLOW)) != 0
    else { return }
    detachThroughHelper()
  }

  /// As an ordinary user: by fusermount3, which is setuid root.
  private func detachThroughHelper() {
    var child: pid_t = 0
    let arguments: [String] = ["fusermount3", "-u", "-q", "-z", "--", fileSystem.mountpoint]
    let words = arguments.map { strdup($0) }
    defer { for word in words { free(word) } }
    guard posix_spawnp(&child, "fusermount3", nil, nil, words + [nil], environ) == 0 else { return }
    for _ in 0..<Self.helperPatience where waitpid(child, nil, WNOHANG) == 0 { usleep(10_000) }
  }

  /// How long the helper is waited for, in hundredths of a second.
  private static let helperPatience = 200
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
