internal import Glibc
internal import RemoteFiles

/// Answers lookups of names.
///
/// Names of the list are answered immediately, names below a listing when it has arrived, and files
/// when their server has described them.
final class Lookups: Sendable {
  private let tree: MountedTree
  private let inodes: InodeTable
  private let attributes: MountAttributes
  private let prober: DirectoryProber
  private let readTimeout: Duration

  init(
    tree: MountedTree, inodes: InodeTable, attributes: MountAttributes, prober: DirectoryProber,
    readTimeout: Duration
  ) {
    self.tree = tree
    self.inodes = inodes
    self.attributes = attributes
    self.prober = prober
    self.readTimeout = readTimeout
  }

  func lookup(
    _ parent: UInt64, _ name: String, _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    guard let path = inodes.directoryPath(parent) else { return reply.error(ENOTDIR) }
    let tree = tree.current
    guard let node = tree.node(path) else { return reply.error(ENOENT) }
    if path.isEmpty, let control = ControlFile(name: name) {
      return reply.entry(attributes.of(control, timeout: FileAttributes.standardTimeout))
    }
    let directory: FileTree.Directory
    switch node {
    case .fixed(let fixed): directory = fixed
    case .listed(let listed): return lookup(name, in: listed, reply)
    }
    switch tree.child(path.isEmpty ? name : path + "/" + name) {
    case nil: reply.error(ENOENT)
    case .directory(let child):
      reply.entry(attributes.of(directory: inodes.number(ofDirectory: child)))
    case .file(let index):
      let file = tree.file(index)
      if !file.isKnown {
        prober.recordLookup(in: path) { tree.unknownFiles(in: directory) }
      }
      answer(reply.parked(), with: file)
    }
  }

  /// Looks up `name` among the names of `directory`, and waits for them.
  private func lookup(
    _ name: String, in directory: ListedDirectory,
    _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    if directory.hides(name) { return reply.error(ENOENT) }
    let parked = reply.parked()
    // One deadline for both: the file's own probe gets the time that the listing leaves.
    let deadline = ContinuousClock.now + readTimeout
    directory.names { [self] result in
      let names: ListedNames
      switch result {
      case .success(let found): names = found
      case .failure(let error):
        parked.take()?.error(error.openErrno)
        return
      }
      directory.preloadCache(from: name, in: names)
      switch directory.child(name, in: names) {
      case nil: parked.take()?.error(ENOENT)
      case .directory(let child):
        guard let reply = parked.take() else { return }
        reply.entry(attributes.of(directory: inodes.remember(child)))
      case .file(let file):
        file.appearance { [self] listed in
          if let listed { return answer(parked, with: file, as: listed) }
          if !file.isKnown {
            prober.recordLookup(in: directory.source.path) { directory.unknownFiles(in: names) }
          }
          answer(parked, with: file, by: deadline)
        }
      }
    }
  }

  /// Answers a lookup with the current version of `file`.
  private func answer(
    _ parked: ParkedReply<some FileSystemReply & ~Copyable>, with file: RemoteFile,
    by deadline: ContinuousClock.Instant? = nil
  ) {
    file.resolve(by: deadline) { [self] result in
      guard let reply = parked.take() else { return }
      switch result {
      case .success(let version):
        inodes.remember(version, of: file)
        reply.entry(attributes.of(version))
      case .failure(let error): reply.error(error.openErrno)
      }
    }
  }

  /// Answers a lookup with the attributes of `file` in its listing.
  private func answer(
    _ parked: ParkedReply<some FileSystemReply & ~Copyable>, with file: RemoteFile,
    as listed: ListedAttributes
  ) {
    guard let reply = parked.take() else { return }
    inodes.remember(file, as: listed)
    reply.entry(attributes.of(listed))
  }
}

extension FileTree {
  /// The files of a directory that are not known yet, in the order of its names.
  fileprivate func unknownFiles(in directory: Directory) -> FileWalk {
    FileWalk(count: directory.children.count) { place in
      guard case .file(let index) = directory.children[place] else { return nil }
      let file = self.makeFile(index)
      return file.isKnown ? nil : file
    }
  }
}
