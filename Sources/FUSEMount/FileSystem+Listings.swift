internal import CFuse
internal import DirectoryListing
internal import Glibc
internal import RemoteFiles

/// Directories whose names come from a listing; requests wait for it.
extension FileSystem {
  /// Looks up `name` among the names of `directory`.
  func lookup(
    _ name: String, in directory: ListedDirectory, _ reply: consuming sending Reply
  ) {
    if directory.hides(name) { return reply.error(ENOENT) }
    let parked = park(reply)
    // One deadline for both: the file's own probe gets the time that the listing leaves.
    let deadline = ContinuousClock.now + environment.settings.readTimeout
    directory.names { [self] result in
      let names: ListedNames
      switch result {
      case .success(let found): names = found
      case .failure(let error):
        parked.take()?.error(error.openErrno)
        return
      }
      directory.lookAhead(from: name, in: names)
      switch directory.child(name, in: names) {
      case nil: parked.take()?.error(ENOENT)
      case .directory(let child):
        guard let reply = parked.take() else { return }
        let number = inodes.remember(child)
        reply.entry(entry(number, directoryAttributes(number)))
      case .file(let file):
        file.appearance { [self] listed in
          if let listed { return answer(parked, with: file, as: listed) }
          if !file.isKnown {
            prober.noteLookup(in: directory.source.path) { directory.unknownFiles(in: names) }
          }
          answer(parked, with: file, by: deadline)
        }
      }
    }
  }

  /// Answers a lookup with the attributes of `file` in its listing.
  private func answer(
    _ parked: ParkedReply, with file: RemoteFile, as listed: ListedAppearance
  ) {
    guard let reply = parked.take() else { return }
    let number = inodes.remember(file, as: listed)
    var entry = entry(number, attributes(of: listed))
    // The time may change as soon as the file is opened.
    entry.attr_timeout = 0
    reply.entry(entry)
  }

  /// Opens a file whose attributes came from its listing: probes its server now.
  func open(
    _ file: RemoteFile, _ number: UInt64, _ info: fuse_file_info, _ reply: consuming sending Reply
  ) {
    let parked = park(reply)
    let deadline = ContinuousClock.now + environment.settings.readTimeout
    file.resolve(by: deadline) { [self] result in
      switch result {
      case .success(let version) where InodeNumber(version.id).rawValue == number:
        guard let reply = parked.take() else { return }
        inodes.settle(version)
        open(number, info, by: deadline, reply)
      // The kernel looks up the name again, once, and opens the result.
      case .success(let version):
        version.awaitLength(by: deadline) { parked.take()?.error(ESTALE) }
      case .failure(let error):
        parked.take()?.error(error.openErrno)
      }
    }
  }

  func attributes(of listed: ListedAppearance) -> stat {
    attributes(
      InodeNumber(listed.id), mode: S_IFREG | 0o444, byteCount: listed.facts.byteCount,
      modified: time_t(listed.facts.modificationTime))
  }

  /// Opens `directory` to read its names.
  func openDirectory(
    _ number: UInt64, _ directory: ListedDirectory, _ info: fuse_file_info,
    _ reply: consuming sending Reply
  ) {
    let parked = park(reply)
    directory.names { [self] result in
      guard let reply = parked.take() else { return }
      switch result {
      case .success(let names):
        // Entries get no inode number before a look-up, because the table forgets numbers when the
        // kernel does.
        let items = names.entries.map { entry in
          OpenHandle.Item(
            name: entry.name, inode: Self.unknownInode, isDirectory: entry.isDirectory)
        }
        prober.noteListing(of: directory.source.path)
        open(OpenHandle(.directory(Self.dots(of: number) + items)), info, reply)
      case .failure(let error): reply.error(error.openErrno)
      }
    }
  }
}
