internal import CFuse
internal import Logging
internal import MountControl
internal import RemoteFiles
internal import Synchronization
internal import TextFormat

/// Handles `.control`, which takes commands.
///
/// A write is answered when its commands are accepted. First all commands are parsed and their
/// files found, then all are accepted, from memory. Longer work follows after the answer, in the
/// order of the commands; its errors appear in the log and in the file's `last_error`.
extension FileSystem {
  static let controlHelp = Array(ControlHelp.text.utf8)

  /// The owner of `.control`: the user for whom root mounts, or otherwise the mounting user,
  /// because only root can change owners.
  var controllingUser: uid_t { mountingUser == 0 ? ownership.userID : mountingUser }

  private func mayControl(_ user: uid_t) -> Bool {
    user == controllingUser || user == mountingUser
  }

  func openControl(_ info: fuse_file_info, _ reply: consuming sending Reply) {
    // The kernel checks the mode, but exempts root and processes with root's privileges.
    guard mayControl(reply.userID) else { return reply.error(EACCES) }
    var info = info
    info.direct_io = 1
    open(OpenHandle(.control(OpenHandle.ControlHandle())), info, reply)
  }

  /// Allows a shell to truncate `.control` before writing; everything else is read-only.
  func setAttributes(_ number: UInt64, _ valid: CInt, _ reply: consuming Reply) {
    let isControl = number == ControlFile.control.inode.rawValue
    guard isControl, valid & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID) == 0
    else { return reply.error(EROFS) }
    guard mayControl(reply.userID) else { return reply.error(EACCES) }
    reply.attributes(attributes(of: .control), timeout: 0)
  }

  func takeWrite(
    _ handle: OpenHandle, _ bytes: UnsafeRawBufferPointer, _ reply: consuming Reply
  ) {
    guard case .control(let control) = handle.content else { return reply.error(EROFS) }
    do throws(ControlRefusal) {
      let commands = try control.writer.withLock { (writer) throws(ControlRefusal) in
        try writer.take(bytes)
      }
      try carryOut(commands)
    } catch {
      environment.logger.warning(
        "command refused", metadata: ["reason": "\(escapingControls(error.description))"])
      return reply.error(error.errno)
    }
    reply.written(bytes.count)
  }

  // MARK: Batches

  /// A command and the files that it affects.
  private enum Step {
    case files(FileVerb, [RemoteFile])
    case reload
    case connections(Int?)
    case rateLimit(Int64?)
    case fileRateLimit(Int64?, [RemoteFile])
  }

  private func carryOut(_ commands: [ControlCommand]) throws(ControlRefusal) {
    try controlling.withLock { (_) throws(ControlRefusal) in
      let tree = tree.withLock { $0 }
      var steps: [Step] = []
      for command in commands { steps.append(try step(command, in: tree)) }
      try checkEvictions(steps)
      for step in steps { accept(step, in: tree) }
    }
  }

  private func step(_ command: ControlCommand, in tree: FileTree) throws(ControlRefusal) -> Step {
    switch command {
    case .connections(let count): return .connections(count)
    case .rateLimit(let rate, []): return .rateLimit(rate)
    case .rateLimit(let rate, let patterns):
      return .fileRateLimit(rate, try files(of: patterns, in: tree))
    case .files(.refresh, []): return .reload
    case .files(let verb, let patterns):
      return .files(verb, try files(of: patterns, in: tree))
    }
  }

  /// The files that the patterns match, each once; all files if there are no patterns.
  ///
  /// First come the files of the list, in its order, then the files of listings that were looked
  /// up. Other names of listings are unknown without asking the server.
  private func files(
    of patterns: [NamePattern], in tree: FileTree
  ) throws(ControlRefusal) -> [RemoteFile] {
    let listed = tree.existingListedFiles
    if patterns.isEmpty { return tree.sources.indices.map { tree.file($0) } + listed }
    var indices: Set<Int> = []
    var listedIndices: Set<Int> = []
    for pattern in patterns {
      if let index = tree.index(of: pattern.text) {
        indices.insert(index)
        continue
      }
      let matching =
        pattern.hasWildcards
        ? tree.sources.indices.filter { pattern.matches(tree.sources[$0].path) } : []
      let listedMatching = listed.indices.filter { pattern.matches(listed[$0].source.path) }
      guard !matching.isEmpty || !listedMatching.isEmpty else {
        throw .noSuchFile(pattern.text)
      }
      indices.formUnion(matching)
      listedIndices.formUnion(listedMatching)
    }
    return indices.sorted().map { tree.file($0) } + listedIndices.sorted().map { listed[$0] }
  }

  /// Refuses files that cannot be evicted after the preceding steps.
  private func checkEvictions(_ steps: [Step]) throws(ControlRefusal) {
    var pinned: [ObjectIdentifier: Bool] = [:]
    var prefetched: [ObjectIdentifier: Bool] = [:]
    for case .files(let verb, let files) in steps {
      for file in files {
        let id = ObjectIdentifier(file)
        switch verb {
        case .pin, .unpin: pinned[id] = verb == .pin
        case .prefetch, .cancel: prefetched[id] = verb == .prefetch
        case .evict:
          if pinned[id] ?? file.isPinned { throw .pinned(file.source.path) }
          if prefetched[id] ?? file.isPrefetched || file.isOpen { throw .inUse(file.source.path) }
        case .pause, .resume, .verify, .refresh: break
        }
      }
    }
  }

  private func accept(_ step: Step, in tree: FileTree) {
    switch step {
    case .reload: reloadList()
    case .connections(let count):
      environment.setConnections(count)
      for file in tree.existingFiles { file.followSettings() }
    case .rateLimit(let rate): environment.setRateLimit(rate)
    case .fileRateLimit(let rate, let files): environment.setRateLimit(rate, of: files)
    case .files(let verb, let files): accept(verb, of: files)
    }
  }

  private func accept(_ verb: FileVerb, of files: [RemoteFile]) {
    switch verb {
    case .prefetch: environment.prefetch(files)
    case .cancel: environment.cancelPrefetch(of: files)
    case .pause: for file in files { file.setPaused(true) }
    case .resume: for file in files { file.setPaused(false) }
    case .evict: environment.background { for file in files { file.evict() } }
    case .pin: for file in files { file.setPinned(true) }
    case .unpin: for file in files { file.setPinned(false) }
    case .verify: environment.verify(files)
    case .refresh: for file in files { file.refresh() }
    }
  }
}

extension Reply {
  /// The user who sends the request (`fuse_req_ctx`).
  fileprivate var userID: uid_t { fuse_req_ctx(request)?.pointee.uid ?? uid_t.max }
}
