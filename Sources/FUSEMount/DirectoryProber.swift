internal import Dispatch
internal import RemoteFiles
internal import Synchronization

/// Asks for the lengths of a directory's files together when somebody looks at them one by one, as
/// `ls -l` does: a thousand round trips in a row become a few dozen.
final class DirectoryProber: Sendable {
  /// How many questions are under way at once.
  static let concurrency = 48

  /// The look-ups after a listing that make a walk of it; one alone may be a single file's open.
  private static let lookupsOfAWalk = 2

  /// The most directories whose look-ups are counted, and the most walks that wait.
  ///
  /// A tree may have no end. The files of those beyond are asked about one by one.
  private static let maximumWalkCount = 1024
  private static let maximumPendingCount = 64

  private struct State {
    /// Look-ups of unknown files since the directory was last listed.
    var walks: [String: Int] = [:]
    /// What is left of the walks to ask about; the last one comes first.
    var pending: [FileWalk] = []
    var active = 0
    var isEnded = false
  }

  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "httpfs.prober")

  func noteListing(of path: String) {
    state.withLock { state in
      state.walks[path] = 0
      if state.walks.count > Self.maximumWalkCount,
        let other = state.walks.keys.first(where: { $0 != path })
      {
        state.walks[other] = nil
      }
    }
  }

  /// Counts a look-up of an unknown file in `path`; when a listing went before it and it is not the
  /// first, asks about all of the directory's `unknownFiles`.
  func noteLookup(in path: String, unknownFiles: @escaping @Sendable () -> FileWalk) {
    let isWalk = state.withLock { state in
      guard let count = state.walks[path] else { return false }
      state.walks[path] = count + 1 < Self.lookupsOfAWalk ? count + 1 : nil
      return count + 1 == Self.lookupsOfAWalk
    }
    guard isWalk else { return }
    // Looking into the cache for each file takes a while: not on the thread of the look-up.
    queue.async { [self] in
      let files = unknownFiles()
      state.withLock { state in
        if !state.isEnded { state.pending.append(files) }
        // Each holds the names of its directory.
        if state.pending.count > Self.maximumPendingCount { state.pending.removeFirst() }
      }
      for _ in 0..<Self.concurrency { startNext() }
    }
  }

  /// Asks about no further files: the mount ends.
  func end() {
    state.withLock {
      $0.isEnded = true
      $0.pending = []
    }
  }

  private func startNext() {
    guard let file = takeNext() else { return }
    // Always by way of the queue: answers that come at once must not pile up on the stack.
    file.probe { [self] in
      queue.async { [self] in
        state.withLock { $0.active -= 1 }
        startNext()
      }
    }
  }

  /// The next file to ask about, where there is a place for it; on the queue.
  private func takeNext() -> RemoteFile? {
    while let walk = state.withLock({ $0.active < Self.concurrency ? $0.pending.last : nil }) {
      // Without the lock: the file comes into being here.
      if let file = walk.next() {
        state.withLock { $0.active += 1 }
        return file
      }
      state.withLock { state in state.pending.removeAll { $0 === walk } }
    }
    return nil
  }
}
