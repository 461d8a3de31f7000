internal import Glibc
package import Logging
package import RemoteFiles

/// The file system of a mount: answers requests about inodes and handles from the tree of files.
///
/// It does not depend on libfuse. A driver translates the kernel's requests to its methods, and its
/// replies and its ``Kernel`` calls back.
package final class FileSystem: Sendable {
  package let mountpoint: String
  private let environment: FileEnvironment
  private let tree: MountedTree
  private let inodes = InodeTable()
  private let prober = DirectoryProber()
  private let attributes: MountAttributes
  private let lookups: Lookups
  private let directories: Directories
  private let files: OpenFiles
  private let controls: ControlFiles
  private let extendedAttributes: ExtendedAttributes
  private let liveness: Liveness

  /// The number of threads on which a driver may call the file system at the same time.
  ///
  /// It exceeds the number of cores, because a thread may wait for the cache's disk, but never for
  /// the network.
  package static let threadCount = 8

  /// - Parameters:
  ///   - mountpoint: the directory, as an absolute path.
  ///   - tree: the files and directories to show.
  ///   - environment: the state that the files share.
  ///   - ownership: the owner of the files.
  ///   - trace: records the operations on files; the kernel then reads no file directly.
  package init(
    mountpoint: String, tree: FileTree, environment: FileEnvironment,
    ownership: FileOwnership = .ofThisProcess, trace: TraceRecorder? = nil
  ) {
    self.mountpoint = mountpoint
    self.environment = environment
    let tree = MountedTree(tree, environment: environment)
    self.tree = tree
    attributes = MountAttributes(ownership: ownership, inodes: inodes)
    lookups = Lookups(
      tree: tree, inodes: inodes, attributes: attributes, prober: prober,
      readTimeout: environment.settings.readTimeout)
    directories = Directories(tree: tree, inodes: inodes, prober: prober)
    let files = OpenFiles(
      inodes: inodes, environment: environment,
      readPlaces: ReadPlaces(limit: Self.threadCount - 1), trace: trace)
    self.files = files
    controls = ControlFiles(
      state: MountState(
        mountpoint: mountpoint, tree: tree, inodes: inodes, environment: environment),
      commands: ControlCommands(tree: tree, environment: environment), attributes: attributes,
      logger: environment.logger)
    extendedAttributes = ExtendedAttributes(inodes: inodes)
    liveness = Liveness(tree: tree, environment: environment)
    environment.onContentDropped { [weak files] version in files?.dropPages(of: version) }
  }

  package var logger: Logger { environment.logger }

  /// Sets the kernel in which the file system is mounted.
  package func attach(_ kernel: any Kernel) { files.attach(kernel) }

  /// Replaces the tree; open handles stay valid.
  package func replaceTree(sources: MountSources) { tree.replace(sources: sources) }

  /// Sets the action of ``reloadList()``, which returns why it has changed nothing, in one line;
  /// nil after a success.
  ///
  /// `hasList` says whether there is a list that can be read again.
  package func onReload(hasList: Bool, _ reload: @escaping @Sendable () -> String?) {
    tree.onReload(hasList: hasList, reload)
  }

  /// Reads the list again soon; two reloads never overlap.
  package func reloadList() { tree.reload() }

  /// Fails all waiting requests, because the mount ends.
  package func abandon() {
    prober.end()
    tree.current.abandon()
    environment.abandonReads()
  }

  /// Ends the transfers and completes the cache, after the last request.
  package func end() {
    // The kernel does not always send the last RELEASE before an unmount.
    for version in inodes.openVersions { version.recordConnections() }
    environment.end()
  }

  // MARK: Names

  package func lookup(
    _ parent: UInt64, _ name: String, _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    lookups.lookup(parent, name, reply)
  }

  /// Drops `count` lookups of an inode, which the kernel has forgotten.
  package func forget(_ number: UInt64, count: UInt64) { inodes.forget(number, count: count) }

  package func attributes(
    _ number: UInt64, _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    guard let attributes = attributes.of(number) else { return reply.error(ESTALE) }
    reply.attributes(attributes)
  }

  /// Changes attributes; `changesAccess` says whether these include a mode or an owner.
  package func setAttributes(
    _ number: UInt64, changesAccess: Bool, _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    controls.setAttributes(number, changesAccess: changesAccess, reply)
  }

  package func extendedAttribute(
    _ name: String, of number: UInt64, room: Int,
    _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    extendedAttributes.value(name, of: number, room: room, reply)
  }

  package func extendedAttributeNames(
    of number: UInt64, room: Int, _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    extendedAttributes.names(of: number, room: room, reply)
  }

  package func statistics(_ reply: consuming sending some FileSystemReply & ~Copyable) {
    liveness.statistics(reply)
  }

  // MARK: Directories

  package func openDirectory(
    _ number: UInt64, _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    directories.open(number, reply)
  }

  package func readDirectory(
    _ handle: OpenHandle, offset: Int64, byteCount: Int,
    _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    directories.read(handle, offset: offset, byteCount: byteCount, reply)
  }

  // MARK: Files

  /// Opens a file with the `flags` of open(2).
  package func open(
    _ number: UInt64, flags: CInt, _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    let control = ControlFile(inode: InodeNumber(rawValue: number))
    let isReadOnly = flags & O_ACCMODE == O_RDONLY && flags & O_TRUNC == 0
    guard isReadOnly || control == .control else { return reply.error(EROFS) }
    if let control { return controls.open(control, reply) }
    files.open(number, reply)
  }

  package func read(
    _ handle: OpenHandle, offset: Int64, byteCount: Int,
    _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    switch handle.content {
    case .directory: reply.error(EISDIR)
    case .status(let stream):
      controls.read(stream, offset: offset, byteCount: byteCount, reply)
    case .control: controls.readHelp(offset: offset, byteCount: byteCount, reply)
    case .file(let version, let isDirect):
      files.read(
        version, isDirect: isDirect, handle, offset: offset, byteCount: byteCount, reply)
    }
  }

  package func write(
    _ handle: OpenHandle, _ bytes: UnsafeRawBufferPointer,
    _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    controls.write(handle, bytes, reply)
  }

  /// Ends a handle of an inode.
  package func release(_ number: UInt64, _ handle: OpenHandle) { files.release(number, handle) }
}
