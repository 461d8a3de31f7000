internal import Dispatch
internal import RemoteFiles
internal import Synchronization

/// Probes the lengths of a directory's files in parallel when a program looks them up one by one,
/// as `ls -l` does.
///
/// A thousand sequential round trips become a few dozen.
final class DirectoryProber: Sendable {
  /// The maximum number of probes in progress.
  static let concurrency = 48

  /// From this many lookups after a listing, a walk is assumed; a single one may be the open of one
  /// file.
  private static let lookupsOfAWalk = 2

  /// The maximum number of directories whose lookups are counted, and of waiting walks.
  ///
  /// A tree may be endless. Beyond the maximum, files are probed one by one.
  private static let maximumWalkCount = 1024
  private static let maximumPendingCount = 64

  private struct State {
    /// Lookups of unknown files since each directory was last listed.
    var walks: [String: Int] = [:]
    /// The rest of the walks; the last walk comes first.
    var pending: [FileWalk] = []
    var active = 0
    var isEnded = false

    /// Counts one more probe.
    ///
    /// - Parameter hasEnded: whether another probe has ended.
    /// - Returns: the walk that it is of; nil if none may start.
    mutating func reserve(hasEnded: Bool) -> FileWalk? {
      if hasEnded { active -= 1 }
      guard active < DirectoryProber.concurrency, let walk = pending.last else { return nil }
      active += 1
      return walk
    }
  }

  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "httpfs.prober")

  func recordListing(of path: String) {
    state.withLock { state in
      state.walks[path] = 0
      if state.walks.count > Self.maximumWalkCount,
        let other = state.walks.keys.first(where: { $0 != path })
      {
        state.walks[other] = nil
      }
    }
  }

  /// Counts a lookup of an unknown file in `path`.
  ///
  /// If the directory was listed before, the second such lookup starts probing all of its
  /// `unknownFiles`.
  func recordLookup(in path: String, unknownFiles: @escaping @Sendable () -> FileWalk) {
    let isWalk = state.withLock { state in
      guard let count = state.walks[path] else { return false }
      state.walks[path] = count + 1 < Self.lookupsOfAWalk ? count + 1 : nil
      return count + 1 == Self.lookupsOfAWalk
    }
    guard isWalk else { return }
    // A look into the cache for each file takes time, so the thread of the lookup must not do it.
    queue.async { [self] in
      let files = unknownFiles()
      state.withLock { state in
        if !state.isEnded { state.pending.append(files) }
        // Each walk holds the names of its directory.
        if state.pending.count > Self.maximumPendingCount { state.pending.removeFirst() }
      }
      for _ in 0..<Self.concurrency { startNext(hasEnded: false) }
    }
  }

  /// Starts no further probes, because the mount ends.
  func end() {
    state.withLock {
      $0.isEnded = true
      $0.pending = []
    }
  }

  /// Starts the next probe, and further ones as long as they end at once.
  ///
  /// The end of a probe starts the next one on its own thread: passing each of thousands to the
  /// queue costs more than a look into the cache. Probes that end at once are taken up by the loop,
  /// because they must not pile up on the stack.
  ///
  /// - Parameter hasEnded: whether another probe has ended.
  private func startNext(hasEnded: Bool) {
    var hasEnded = hasEnded
    while let file = takeNext(hasEnded: hasEnded) {
      let events = ProbeEvents()
      file.probe { [self] in
        if !events.isFirst() { startNext(hasEnded: true) }
      }
      if events.isFirst() { return }
      hasEnded = true
    }
  }

  /// The next file to probe, if another probe may start.
  private func takeNext(hasEnded: Bool) -> RemoteFile? {
    var hasEnded = hasEnded
    while let walk = state.withLock({ $0.reserve(hasEnded: hasEnded) }) {
      // Without the lock, because this creates the file.
      switch walk.next() {
      case .file(let file): return file
      case .skipped:
        // This thread may be the network's, and there may be many more names to skip.
        queue.async { [self] in startNext(hasEnded: true) }
        return nil
      case .ended: state.withLock { $0.pending.removeAll { $0 === walk } }
      }
      hasEnded = true
    }
    return nil
  }
}

/// Two events of a probe, its end and the return of the call that has started it, in any order.
private final class ProbeEvents: Sendable {
  private let hasFirst = Atomic(false)

  /// Records one of them; whether it is the first.
  func isFirst() -> Bool { !hasFirst.exchange(true, ordering: .acquiringAndReleasing) }
}
