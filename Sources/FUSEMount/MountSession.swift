internal import CFuse
internal import CPassthrough
internal import Glibc
internal import LinuxSystem
internal import Logging
package import RemoteFileSystem
internal import Synchronization

/// Why a mount failed to start or to end; one line that tells the user what to do.
package struct MountError: Error, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// Mounts a file system, serves it until it is unmounted, and unmounts it.
package final class MountSession: Sendable {
  package struct Options: Sendable {
    /// Whether other users may access the mount.
    package var allowOther: Bool
    /// Whether programs in the mount must not be executed.
    package var forbidsExecution: Bool
    /// The source in the kernel's table of mounts, which every user can read; without `,` and `\`.
    package var sourceName: String

    package init(
      allowOther: Bool = false, forbidsExecution: Bool = false, sourceName: String = "httpfs"
    ) {
      self.allowOther = allowOther
      self.forbidsExecution = forbidsExecution
      self.sourceName = sourceName
    }
  }

  private let fileSystem: FileSystem
  private let driver: Driver
  private let session: KernelSession
  /// The mount's device, MAJOR:MINOR; nil if the kernel does not list it.
  private let device: String?
  private let loopThread = Mutex<pthread_t?>(nil)
  private let hasEnded = Atomic<Bool>(false)
  private let isTakenDown = Atomic<Bool>(false)

  /// Mounts `fileSystem`.
  ///
  /// The kernel's requests wait until ``serve(whenReady:)`` is called.
  ///
  /// - Throws: ``MountError`` if the kernel or fusermount3 refuses.
  package init(_ fileSystem: FileSystem, options: Options) throws(MountError) {
    self.fileSystem = fileSystem
    driver = Driver(fileSystem)
    let mountOptions =
      "fsname=\(options.sourceName),subtype=httpfs,nosuid,nodev,default_permissions"
      + (options.allowOther ? ",allow_other" : "")
      + (options.forbidsExecution ? ",noexec" : "")
    let context = Unmanaged.passUnretained(driver).toOpaque()
    let making = CapturedErrors.during {
      Self.newSession(arguments: ["httpfs", "-o", mountOptions], context: context)
    }
    guard let pointer = making.result else {
      throw MountError(
        "libfuse refuses the mount options '\(mountOptions)': \(Self.reason(in: making.lines)); "
          + "check --fsname")
    }
    let isRoot = geteuid() == 0
    let mounting = CapturedErrors.during { fuse_session_mount(pointer, fileSystem.mountpoint) }
    guard mounting.result == 0 else {
      fuse_session_destroy(pointer)
      throw MountError(
        "cannot mount at '\(fileSystem.mountpoint)': \(Self.reason(in: mounting.lines)); "
          + "'httpfs doctor' checks the usual causes")
    }
    for line in making.lines + mounting.lines { fileSystem.logger.warning("\(line)") }
    // Backing files need CAP_SYS_ADMIN; an ordinary user's daemon splices.
    let code = httpfs_passthrough_install(pointer, isRoot)
    guard code == 0 else {
      fuse_session_unmount(pointer)
      fuse_session_destroy(pointer)
      throw MountError(
        "cannot prepare the FUSE device: \(ErrorNumber(rawValue: -code)); is there a /dev/null?")
    }
    session = KernelSession(
      pointer, mountpoint: fileSystem.mountpoint, offersPassthrough: isRoot)
    device = MountTable.currentMount(at: fileSystem.mountpoint)?.device
    fileSystem.attach(session)
  }

  /// Why a mount was refused, as libfuse and fusermount3 have printed it.
  private static func reason(in lines: [String]) -> String {
    lines.isEmpty ? "libfuse gives no reason" : lines.joined(separator: "; ")
  }

  private static func newSession(
    arguments: [String], context: UnsafeMutableRawPointer
  ) -> OpaquePointer? {
    var list = fuse_args(argc: 0, argv: nil, allocated: 0)
    defer { fuse_opt_free_args(&list) }
    for argument in arguments { fuse_opt_add_arg(&list, argument) }
    var operations = Driver.operations()
    return fuse_session_new(
      &list, &operations, MemoryLayout<fuse_lowlevel_ops>.size, context)
  }

  /// Serves the mount on this and other threads until it is unmounted or ``stop(finish:)`` is
  /// called, then unmounts it.
  ///
  /// - Parameters:
  ///   - whenReady: called when the kernel has established the connection; from then on reads are
  ///     answered.
  ///   - finish: ends the process. It must not wait for any thread, because some may still
  ///     calculate a hash or wait for a slow disk.
  package func serve(whenReady: @escaping @Sendable () -> Void, finish: () -> Never) -> Never {
    driver.onReady(whenReady)
    loopThread.withLock { $0 = pthread_self() }
    let code = httpfs_session_loop(session.pointer, UInt32(FileSystem.threadCount))
    hasEnded.store(true, ordering: .releasing)
    if code < 0 {
      fileSystem.logger.error(
        "the FUSE session ended", metadata: ["errno": "\(-code)"])
    }
    takeDown(finish)
  }

  /// Ends ``serve(whenReady:finish:)``, from any thread.
  ///
  /// If that does not end in time, unmounts and calls `finish`.
  package func stop(finish: () -> Never) {
    fuse_session_exit(session.pointer)
    // The loop checks the exit flag when a signal interrupts its semaphore. A signal may arrive
    // just before the loop waits, so it is repeated.
    for _ in 0..<100 where !hasEnded.load(ordering: .acquiring) {
      if let thread = loopThread.withLock({ $0 }) { pthread_kill(thread, SIGUSR1) }
      usleep(20_000)
    }
    guard !hasEnded.load(ordering: .acquiring) else { return }
    // A libfuse thread waits for the cache's disk, and the loop waits for that thread.
    fileSystem.logger.error(
      "the mount ends although the disk of its cache does not answer")
    takeDown(finish)
  }

  /// Unmounts and ends the process.
  ///
  /// A second caller waits for that.
  private func takeDown(_ finish: () -> Never) -> Never {
    while isTakenDown.exchange(true, ordering: .acquiringAndReleasing) { pause() }
    fileSystem.abandon()
    // From now on, replies of other threads go to /dev/null, never to a file that reuses the
    // descriptor's number.
    let hasEnded = httpfs_session_close(session.pointer)
    // If the connection had already ended, the mount was unmounted or aborted: ENOTCONN must stay.
    if !hasEnded { detach() }
    fileSystem.end()
    finish()
  }

  /// Removes the mount from the file tree, even with open files.
  private func detach() {
    // If it was already detached, another mount may have replaced it.
    guard let device, MountTable.currentMount(at: fileSystem.mountpoint)?.device == device,
      umount2(fileSystem.mountpoint, Int32(MNT_DETACH) | Int32(UMOUNT_NOFOLLOW)) != 0
    else { return }
    detachThroughHelper()
  }

  /// Unmounts for an ordinary user through fusermount3, which is setuid root.
  private func detachThroughHelper() {
    let helper = "fusermount3"
    let words = [helper, "-u", "-q", "-z", "--", fileSystem.mountpoint]
    try? ChildProgram(.named(helper), words).start().waitForEnd(atMost: Self.helperTimeout)
  }

  /// How long to wait for the helper.
  private static let helperTimeout = Duration.seconds(2)
}
