internal import MountControl
internal import RemoteFiles
internal import Synchronization

/// Carries out the commands of `.control`.
///
/// A write is answered when its commands are accepted. First all commands are parsed and their
/// files found, then all are accepted, from memory. Longer work follows after the answer, in the
/// order of the commands; its errors appear in the log and in the file's `last_error`.
final class ControlCommands: Sendable {
  private let tree: MountedTree
  private let environment: FileEnvironment
  /// Held while a batch of commands is accepted, so that batches do not mix; first in the lock
  /// order.
  private let controlling = Mutex(())

  init(tree: MountedTree, environment: FileEnvironment) {
    self.tree = tree
    self.environment = environment
  }

  /// A command and the files that it affects.
  private enum Step {
    case files(FileVerb, [RemoteFile])
    case reload
    case connections(Int?)
    case rateLimit(Int64?)
    case fileRateLimit(Int64?, [RemoteFile])
  }

  func carryOut(_ commands: [ControlCommand]) throws(ControlRefusal) {
    try controlling.withLock { (_) throws(ControlRefusal) in
      let tree = tree.current
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
    case .reload: self.tree.reload()
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
