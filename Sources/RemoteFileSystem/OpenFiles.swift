internal import Glibc
internal import HTTPTransferCore
internal import Logging
internal import RemoteFiles
internal import Synchronization

/// Opens, reads and releases the files of servers.
///
/// Requests that need the network are parked; no thread waits for it.
final class OpenFiles: Sendable {
  private let inodes: InodeTable
  private let environment: FileEnvironment
  private let trace: TraceRecorder?
  private let readPlaces: ReadPlaces
  /// The kernel that the file system is mounted in.
  private let kernel = Mutex<(any Kernel)?>(nil)

  init(
    inodes: InodeTable, environment: FileEnvironment, readPlaces: ReadPlaces, trace: TraceRecorder?
  ) {
    self.inodes = inodes
    self.environment = environment
    self.readPlaces = readPlaces
    self.trace = trace
  }

  func attach(_ kernel: any Kernel) { self.kernel.withLock { $0 = kernel } }

  private var attachedKernel: (any Kernel)? { kernel.withLock { $0 } }

  /// Makes the kernel drop its pages of a version whose bytes were wrong.
  func dropPages(of version: VersionID) {
    attachedKernel?.dropPages(of: InodeNumber(version))
  }

  // MARK: Opens

  func open(
    _ number: UInt64, by deadline: ContinuousClock.Instant? = nil,
    _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    switch inodes.file(number) {
    case .described(let version, let file):
      open(version, of: file, number, by: deadline, reply)
    case .listed(let file, _): open(file, number, reply)
    case nil: reply.error(ESTALE)
    }
  }

  private func open(
    _ version: RemoteVersion, of file: RemoteFile, _ number: UInt64,
    by deadline: ContinuousClock.Instant?,
    _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    attachedKernel?.prepareForOpen()
    let parked = reply.parked()
    let start = trace?.now ?? 0
    file.open(version, by: deadline) { [self] error in
      if let error {
        parked.take()?.error(error.openErrno)
        return
      }
      // From here on no step waits for the disk, because this may run on the network thread.
      let handles = VersionHandles(owner: version)
      handles.retain(needsBacking: !inodes.isOpen(number)) { [self] result in
        switch result {
        case .success(let backing):
          guard let reply = parked.take() else { return handles.release() }
          finishOpen(of: version, number, backing: backing, since: start, reply)
        case .failure(let error):
          environment.logger.error(
            "cannot open", metadata: ["file": "\(version.path)", "error": "\(error)"])
          parked.take()?.error(error.openErrno)
        }
      }
    }
  }

  /// Opens a file whose attributes came from its listing: probes its server now.
  private func open(
    _ file: RemoteFile, _ number: UInt64,
    _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    let parked = reply.parked()
    let deadline = ContinuousClock.now + environment.settings.readTimeout
    file.resolve(by: deadline) { [self] result in
      switch result {
      case .success(let version) where InodeNumber(version.id).rawValue == number:
        guard let reply = parked.take() else { return }
        inodes.settle(version)
        open(number, by: deadline, reply)
      // The kernel looks up the name again, once, and opens the result.
      case .success(let version):
        version.awaitLength(by: deadline) { parked.take()?.error(ESTALE) }
      case .failure(let error):
        parked.take()?.error(error.openErrno)
      }
    }
  }

  private func finishOpen(
    of version: RemoteVersion, _ number: UInt64, backing: BackingFile?, since start: Double,
    _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    let isDirect = version.length == nil
    guard
      let opened = inodes.beginOpen(
        number, isLengthKnown: !isDirect, decide: { readMode(of: version, backing) })
    else {
      VersionHandles(owner: version).release()
      return reply.error(ESTALE)
    }
    let mode: HandleMode
    if case .passthrough(let id) = opened.mode {
      mode = .passthrough(backingID: id)
    } else if isDirect {
      // The kernel must not treat the bytes received so far as the whole file.
      mode = .direct
    } else {
      // The bytes of an inode never change.
      mode = .cached(keepsPages: opened.keepsPages)
    }
    let handle = OpenHandle(
      .file(version, isDirect: isDirect),
      traceHandle: trace?.opened(version.path, length: version.length, since: start))
    if !reply.open(handle, mode) {
      if !opened.keepsPages { inodes.distrustPages(number) }
      release(number, handle)
    }
  }

  /// How the first handle of an inode will read; `file` is the version's
  /// ``VersionReads/backingFile``.
  private func readMode(
    of version: RemoteVersion, _ file: BackingFile?
  ) -> InodeTable.ReadMode {
    guard trace == nil, version.length != 0, let file, let id = attachedKernel?.openBacking(file)
    else { return .cached }
    return .passthrough(backingID: id)
  }

  /// Ends a handle of a file.
  func release(_ number: UInt64, _ handle: OpenHandle) {
    guard case .file(let version, _) = handle.content else { return }
    if let id = inodes.endOpen(number) { attachedKernel?.closeBacking(id) }
    if let name = handle.traceHandle { trace?.closed(name) }
    VersionHandles(owner: version).release()
  }

  // MARK: Reads

  /// Reads `version` over `handle`.
  func read(
    _ version: RemoteVersion, isDirect: Bool, _ handle: OpenHandle, offset: Int64, byteCount: Int,
    _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    guard offset >= 0 else { return reply.error(EINVAL) }
    let range = ByteRange(offset: offset, byteCount: Int64(byteCount))
    let note = readNote(handle, offset: offset)
    let hasPlace = readPlaces.begin()
    defer { if hasPlace { readPlaces.end() } }
    guard hasPlace || !VersionReads(owner: version).mayWaitForDisk(range) else {
      let parked = ParkedReply(reply)
      return readPlaces.later { [self] in
        guard let reply = parked.take() else { return }
        read(range, of: version, isDirect: isDirect, note: note, reply)
      }
    }
    read(range, of: version, isDirect: isDirect, note: note, reply)
  }

  private func read(
    _ range: ByteRange, of version: RemoteVersion, isDirect: Bool,
    note: (@Sendable (Int) -> Void)?,
    _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    switch VersionReads(owner: version).attempt(range) {
    case .present(let bytes):
      note?(bytes.byteCount)
      reply.present(bytes)
    case .failed(let error):
      reply.error(error.readErrno)
    case .absent:
      // Only direct reads are interrupted; the kernel itself kills a buffered reader.
      let parked = isDirect ? reply.parked() : ParkedReply(reply)
      VersionReads(owner: version).wait(for: range, reply: PendingRead(parked, note: note))
    }
  }

  /// Records a read in the trace once its byte count is known; nil if no trace is recorded.
  private func readNote(_ handle: OpenHandle, offset: Int64) -> (@Sendable (Int) -> Void)? {
    guard let trace, let name = handle.traceHandle else { return nil }
    let start = trace.now
    return { trace.read(name, offset: offset, byteCount: Int64($0), since: start) }
  }
}
