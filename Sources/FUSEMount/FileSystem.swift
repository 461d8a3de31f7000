internal import CFuse
internal import CPassthrough
internal import Glibc
internal import HTTPTransferCore
internal import Logging
internal import MountStatus
public import RemoteFiles
internal import Synchronization

/// The mounted file system: answers the kernel's requests from the tree of files.
///
/// It only translates: names to files, versions to inodes, errors to errno. Requests that need the
/// network are parked; no thread waits for it.
public final class FileSystem: Sendable {
  public let mountpoint: String
  public let environment: FileEnvironment
  let inodes = InodeTable()
  let interrupts = InterruptTable()
  let prober: DirectoryProber
  private let readPlaces = ReadPlaces(limit: FileSystem.threadCount - 1)
  private let trace: TraceRecorder?
  let tree: Mutex<FileTree>
  /// Held while a batch of commands is accepted, so that batches do not mix; first in the lock
  /// order.
  let controlling = Mutex(())
  /// Reads the list again.
  private let reload = Mutex<(@Sendable () -> Void)?>(nil)
  let started = ContinuousClock.now
  let ownership: FileOwnership
  /// The mounting user.
  let mountingUser: uid_t = getuid()
  private let mountTime: time_t = time(nil)
  /// The FUSE session, once it exists; for registering backing files.
  let session = Mutex<SessionPointer?>(nil)

  let hasRaisedReadAhead = Atomic<Bool>(false)

  /// Called when the kernel has established the connection.
  let onReady = Mutex<(@Sendable () -> Void)?>(nil)

  /// The number of libfuse threads.
  ///
  /// It exceeds the number of cores, because a thread may wait for the cache's disk, but never for
  /// the network.
  static let threadCount = 8

  /// How long the kernel may cache names and attributes.
  ///
  /// Every `open` is passed to us.
  static let attributeTimeout = 1.0

  /// - Parameters:
  ///   - mountpoint: the directory, as an absolute path.
  ///   - tree: the files and directories to show.
  ///   - environment: the state that the files share.
  ///   - ownership: the owner of the files.
  ///   - trace: records the operations on files; the kernel then reads no file directly.
  public init(
    mountpoint: String, tree: FileTree, environment: FileEnvironment,
    ownership: FileOwnership = .ofThisProcess, trace: TraceRecorder? = nil
  ) {
    self.ownership = ownership
    self.trace = trace
    self.mountpoint = mountpoint
    self.environment = environment
    self.tree = Mutex(tree)
    prober = DirectoryProber()
    environment.onContentDropped { [weak self] version in self?.dropPages(of: version) }
  }

  /// Tells the kernel to drop its pages of a version whose bytes were wrong.
  private func dropPages(of version: VersionID) {
    guard let session = session.withLock({ $0 }) else { return }
    fuse_lowlevel_notify_inval_inode(session.pointer, InodeNumber(version).rawValue, 0, 0)
  }

  /// Replaces the tree; open handles stay valid.
  public func replaceTree(sources: MountSources) {
    let old = tree.withLock { $0 }
    let new = FileTree(sources: sources, environment: environment, reusing: old)
    tree.withLock { $0 = new }
    let kept = Set(new.existingFiles.map { ObjectIdentifier($0) })
    environment.cancelPrefetch(
      of: old.existingFiles.filter { !kept.contains(ObjectIdentifier($0)) })
  }

  /// Sets the action of ``reloadList()``.
  public func onReload(_ reload: @escaping @Sendable () -> Void) {
    self.reload.withLock { $0 = reload }
  }

  /// Reads the list again soon; two reloads never overlap.
  public func reloadList() {
    guard let reload = reload.withLock({ $0 }) else { return }
    environment.background(reload)
  }

  /// Fails all waiting requests, because the mount ends.
  public func abandon() {
    prober.end()
    tree.withLock { $0 }.abandon()
    environment.abandonReads()
  }

  // MARK: Names

  func lookup(_ parent: UInt64, _ name: String, _ reply: consuming sending Reply) {
    guard let path = inodes.directoryPath(parent) else { return reply.error(ENOTDIR) }
    let tree = tree.withLock { $0 }
    guard let node = tree.node(path) else { return reply.error(ENOENT) }
    if path.isEmpty, let control = ControlFile(name: name) {
      return reply.entry(entry(control.inode, attributes(of: control)))
    }
    let directory: FileTree.Directory
    switch node {
    case .fixed(let fixed): directory = fixed
    case .listed(let listed): return lookup(name, in: listed, reply)
    }
    switch tree.child(path.isEmpty ? name : path + "/" + name) {
    case nil: reply.error(ENOENT)
    case .directory(let child):
      let number = inodes.number(ofDirectory: child)
      reply.entry(entry(number, directoryAttributes(number)))
    case .file(let index):
      let file = tree.file(index)
      if !file.isKnown {
        prober.noteLookup(in: path) { tree.unknownFiles(in: directory) }
      }
      answer(park(reply), with: file)
    }
  }

  /// Answers a lookup with the current version of `file`.
  func answer(
    _ parked: ParkedReply, with file: RemoteFile, by deadline: ContinuousClock.Instant? = nil
  ) {
    file.resolve(by: deadline) { [self] result in
      guard let reply = parked.take() else { return }
      switch result {
      case .success(let version):
        let number = inodes.remember(version, of: file)
        let (attributes, timeout) = attributes(of: version)
        var entry = entry(number, attributes)
        entry.attr_timeout = timeout
        reply.entry(entry)
      case .failure(let error): reply.error(error.openErrno)
      }
    }
  }

  func attributes(_ number: UInt64, _ reply: consuming Reply) {
    let inode = InodeNumber(rawValue: number)
    if inodes.directoryPath(number) != nil {
      reply.attributes(directoryAttributes(inode), timeout: Self.attributeTimeout)
    } else if let control = ControlFile(inode: inode) {
      reply.attributes(attributes(of: control), timeout: 0)
    } else if let version = inodes.version(number) {
      let (attributes, timeout) = attributes(of: version)
      reply.attributes(attributes, timeout: timeout)
    } else if let (_, listed) = inodes.listed(number) {
      reply.attributes(attributes(of: listed), timeout: 0)
    } else {
      reply.error(ESTALE)
    }
  }

  // MARK: Directories

  func openDirectory(
    _ number: UInt64, _ info: fuse_file_info, _ reply: consuming sending Reply
  ) {
    let tree = tree.withLock { $0 }
    guard let path = inodes.directoryPath(number), let node = tree.node(path) else {
      return reply.error(ENOENT)
    }
    let directory: FileTree.Directory
    switch node {
    case .fixed(let fixed): directory = fixed
    case .listed(let listed): return openDirectory(number, listed, info, reply)
    }
    var items = Self.dots(of: number)
    items.reserveCapacity(directory.children.count + 2)
    for child in directory.children {
      let name = tree.name(of: child)
      switch child {
      case .directory(let path):
        let inode = inodes.number(ofDirectory: path)
        items.append(.init(name: name, inode: inode.rawValue, isDirectory: true))
      case .file:
        items.append(.init(name: name, inode: Self.unknownInode, isDirectory: false))
      }
    }
    prober.noteListing(of: path)
    open(OpenHandle(.directory(items)), info, reply)
  }

  /// The `.` and `..` of every directory.
  static func dots(of number: UInt64) -> [OpenHandle.Item] {
    [
      OpenHandle.Item(name: ".", inode: number, isDirectory: true),
      OpenHandle.Item(name: "..", inode: unknownInode, isDirectory: true),
    ]
  }

  /// The inode number that `readdir` gives for a file that was not looked up (FUSE_UNKNOWN_INO).
  static let unknownInode: UInt64 = 0xFFFF_FFFF

  func readDirectory(
    _ handle: OpenHandle, offset: Int64, byteCount: Int, _ reply: consuming Reply
  ) {
    guard case .directory(let items) = handle.content, offset >= 0 else {
      return reply.error(EBADF)
    }
    let request = reply.request
    var used = 0
    var buffer = [CChar](repeating: 0, count: byteCount)
    for index in min(Int(clamping: offset), items.count)..<items.count {
      let item = items[index]
      var attributes = stat()
      attributes.st_ino = ino_t(item.inode)
      attributes.st_mode = item.isDirectory ? S_IFDIR : S_IFREG
      let room = byteCount - used
      let size = buffer.withUnsafeMutableBufferPointer {
        fuse_add_direntry(
          request, $0.baseAddress.map { $0 + used }, room, item.name, &attributes,
          off_t(index + 1))
      }
      guard size <= room else { break }
      used += size
    }
    reply.bytes(buffer[..<used])
  }

  // MARK: Files

  func open(
    _ number: UInt64, _ info: fuse_file_info, by deadline: ContinuousClock.Instant? = nil,
    _ reply: consuming sending Reply
  ) {
    if number == ControlFile.control.inode.rawValue { return openControl(info, reply) }
    guard info.flags & O_ACCMODE == O_RDONLY, info.flags & O_TRUNC == 0 else {
      return reply.error(EROFS)
    }
    if let control = ControlFile(inode: InodeNumber(rawValue: number)) {
      var info = info
      info.direct_io = 1
      return open(OpenHandle(content(of: control)), info, reply)
    }
    guard let version = inodes.version(number), let file = inodes.file(number) else {
      if let (file, _) = inodes.listed(number) { return open(file, number, info, reply) }
      return reply.error(ESTALE)
    }
    raiseReadAheadOnce()
    let parked = park(reply)
    let start = trace?.now ?? 0
    file.open(version, by: deadline) { [self] error in
      if let error {
        parked.take()?.error(error.openErrno)
        return
      }
      // Nothing from here on waits for the disk, because this may run on the network thread.
      version.retainHandle(needsBacking: !inodes.isOpen(number)) { [self] result in
        switch result {
        case .success(let backing):
          guard let reply = parked.take() else { return version.releaseHandle() }
          openFile(version, number, info, backing: backing, since: start, reply)
        case .failure(let error):
          environment.logger.error(
            "cannot open", metadata: ["file": "\(version.path)", "error": "\(error)"])
          parked.take()?.error(error.openErrno)
        }
      }
    }
  }

  private func openFile(
    _ version: RemoteVersion, _ number: UInt64, _ info: fuse_file_info, backing: BackingFile?,
    since start: Double, _ reply: consuming Reply
  ) {
    let isDirect = version.length == nil
    guard
      let opened = inodes.beginOpen(
        number, isLengthKnown: !isDirect, decide: { readMode(of: version, backing) })
    else {
      version.releaseHandle()
      return reply.error(ESTALE)
    }
    var info = info
    var backingID: CInt?
    if case .passthrough(let id) = opened.mode {
      backingID = id
    } else if isDirect {
      // The kernel must not take the bytes received so far for the whole file.
      info.direct_io = 1
    } else if opened.keepsPages {
      // The bytes of an inode never change.
      info.keep_cache = 1
    }
    let handle = OpenHandle(
      .file(version, isDirect: isDirect),
      traceHandle: trace?.opened(version.path, length: version.length, since: start))
    info.fh = handle.retainedForKernel()
    if !reply.open(info, backingID: backingID) {
      if !opened.keepsPages { inodes.distrustPages(number) }
      release(number, &info)
    }
  }

  /// How the first handle of an inode will read; `file` is the version's
  /// ``RemoteVersion/backingFile``.
  private func readMode(
    of version: RemoteVersion, _ file: BackingFile?
  ) -> InodeTable.ReadMode {
    guard trace == nil, version.length != 0, let file,
      let session = session.withLock({ $0 }), session.offersPassthrough
    else { return .cached }
    let id = withExtendedLifetime(file) {
      httpfs_passthrough_open_backing(session.pointer, file.descriptor)
    }
    // Without the privilege, or on a stacked file system, the daemon splices instead.
    return id > 0 ? .passthrough(backingID: id) : .cached
  }

  func open(_ handle: OpenHandle, _ info: fuse_file_info, _ reply: consuming Reply) {
    var info = info
    info.fh = handle.retainedForKernel()
    if !reply.open(info, backingID: nil) { _ = OpenHandle.released(&info) }
  }

  func read(
    _ handle: OpenHandle, offset: Int64, byteCount: Int, _ reply: consuming sending Reply
  ) {
    switch handle.content {
    case .directory: reply.error(EISDIR)
    case .status(let stream):
      guard let bytes = stream.read(at: Int(clamping: offset), byteCount: byteCount) else {
        return reply.error(ESPIPE)
      }
      reply.bytes(bytes[...])
    case .control: reply.bytes(part(of: Self.controlHelp, offset, byteCount))
    case .file(let version, let isDirect):
      guard offset >= 0 else { return reply.error(EINVAL) }
      let range = ByteRange(offset: offset, byteCount: Int64(byteCount))
      let note = readNote(handle, offset: offset)
      let hasPlace = readPlaces.begin()
      defer { if hasPlace { readPlaces.end() } }
      guard hasPlace || !version.mayWaitForDisk(range) else {
        let parked = ParkedReply(reply)
        return readPlaces.later { [self] in
          guard let reply = parked.take() else { return }
          read(range, of: version, isDirect: isDirect, note: note, reply)
        }
      }
      read(range, of: version, isDirect: isDirect, note: note, reply)
    }
  }

  private func read(
    _ range: ByteRange, of version: RemoteVersion, isDirect: Bool,
    note: (@Sendable (Int) -> Void)?, _ reply: consuming sending Reply
  ) {
    switch version.attempt(range) {
    case .present(let bytes):
      note?(bytes.byteCount)
      reply.present(bytes)
    case .failed(let error):
      reply.error(error.readErrno)
    case .absent:
      // Only direct reads are interrupted; the kernel kills a buffered reader without our help.
      let parked = isDirect ? park(reply) : ParkedReply(reply)
      version.wait(for: range, reply: PendingRead(parked, note: note))
    }
  }

  /// Records a read in the trace once its byte count is known; nil if no trace is recorded.
  private func readNote(_ handle: OpenHandle, offset: Int64) -> (@Sendable (Int) -> Void)? {
    guard let trace, let name = handle.traceHandle else { return nil }
    let start = trace.now
    return { trace.read(name, offset: offset, byteCount: Int64($0), since: start) }
  }

  private func part(of bytes: [UInt8], _ offset: Int64, _ byteCount: Int) -> ArraySlice<UInt8> {
    let start = min(max(0, Int(clamping: offset)), bytes.count)
    return bytes[start..<min(start + byteCount, bytes.count)]
  }

  func release(_ number: UInt64, _ info: UnsafeMutablePointer<fuse_file_info>?) {
    guard let handle = OpenHandle.released(info), case .file(let version, _) = handle.content else {
      return
    }
    if let backingID = inodes.endOpen(number), let session = session.withLock({ $0 }) {
      httpfs_passthrough_close_backing(session.pointer, backingID)
    }
    if let name = handle.traceHandle { trace?.closed(name) }
    version.releaseHandle()
  }

  func park(_ reply: consuming sending Reply) -> ParkedReply {
    let request = reply.request
    let parked = ParkedReply(reply)
    interrupts.register(parked, request: request)
    return parked
  }

  // MARK: Attributes

  func entry(_ number: InodeNumber, _ attributes: stat) -> fuse_entry_param {
    var entry = fuse_entry_param()
    entry.ino = number.rawValue
    entry.attr = attributes
    entry.attr.st_ino = ino_t(number.rawValue)
    entry.attr_timeout = Self.attributeTimeout
    entry.entry_timeout = Self.attributeTimeout
    return entry
  }

  func attributes(
    _ number: InodeNumber, mode: mode_t, byteCount: Int64, modified: time_t
  ) -> stat {
    var attributes = stat()
    attributes.st_ino = ino_t(number.rawValue)
    attributes.st_mode = mode & ~ownership.mask
    attributes.st_nlink = mode & S_IFMT == S_IFDIR ? 2 : 1
    attributes.st_uid = ownership.userID
    attributes.st_gid = ownership.groupID
    attributes.st_size = off_t(byteCount)
    // With fewer blocks, tools assume holes and look for zeros that do not exist.
    attributes.st_blocks = blkcnt_t(byteCount / 512 + (byteCount % 512 == 0 ? 0 : 1))
    attributes.st_blksize = 128 << 10
    attributes.st_mtim.tv_sec = modified
    attributes.st_ctim.tv_sec = modified
    attributes.st_atim.tv_sec = modified
    return attributes
  }

  /// The attributes of `version`, and for how long the kernel may cache them: not at all while the
  /// size is only what has arrived so far.
  private func attributes(of version: RemoteVersion) -> (stat, timeout: Double) {
    let size = version.visibleSize
    let number = InodeNumber(version.id)
    // The size of other versions never changes.
    if version.content.completeLength == nil { inodes.noteSize(number, isFinal: size.isFinal) }
    let attributes = attributes(
      number, mode: S_IFREG | 0o444, byteCount: size.byteCount,
      modified: version.modificationTime.map { time_t($0) } ?? mountTime)
    return (attributes, size.isFinal ? Self.attributeTimeout : 0)
  }

  func attributes(of control: ControlFile) -> stat {
    let mode: mode_t = control == .control ? 0o600 : 0o444
    var attributes = attributes(
      control.inode, mode: S_IFREG | mode, byteCount: 0, modified: time(nil))
    if control == .control { attributes.st_uid = controllingUser }
    return attributes
  }

  func directoryAttributes(_ number: InodeNumber) -> stat {
    attributes(number, mode: S_IFDIR | 0o555, byteCount: 0, modified: mountTime)
  }

  func statistics(_ reply: consuming sending Reply) {
    let files = tree.withLock { $0 }.existingFiles
    let byteCount = files.reduce(Int64(0)) { $0.saturatingSum($1.knownLength ?? 0) }
    var values = statvfs()
    values.f_bsize = 4096
    values.f_frsize = 4096
    values.f_blocks = fsblkcnt_t(max(0, byteCount) / 4096)
    values.f_namemax = 255
    values.f_flag = UInt(ST_RDONLY)
    replyInTurn(values, reply)
  }
}

extension FileTree {
  /// The files of a directory that are not known yet, in the order of its names.
  func unknownFiles(in directory: Directory) -> FileWalk {
    FileWalk(count: directory.children.count) { place in
      guard case .file(let index) = directory.children[place] else { return nil }
      let file = self.file(index)
      return file.isKnown ? nil : file
    }
  }
}

/// A parked read of a file, as RemoteFiles sees it.
private final class PendingRead: ReadReply {
  private let parked: ParkedReply
  /// Records the read and its byte count in the trace.
  private let note: (@Sendable (Int) -> Void)?

  init(_ parked: ParkedReply, note: (@Sendable (Int) -> Void)?) {
    self.parked = parked
    self.note = note
  }

  func succeed(_ bytes: PresentBytes) {
    note?(bytes.byteCount)
    parked.take()?.present(bytes)
  }

  func fail(_ error: FileError) {
    parked.take()?.error(error.readErrno)
  }
}
