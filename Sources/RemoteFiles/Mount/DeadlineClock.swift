internal import HTTPTransfer
internal import Logging
internal import RangeCache
internal import Synchronization

/// Checks the deadlines of questions and parked reads, stalled requests and due checkpoints.
///
/// It ticks every 200 ms on the network thread while there are any.
///
/// Lock order: `state` is a leaf.
final class DeadlineClock: Sendable {
  /// How often deadlines and stalls are checked: answers may be this late.
  private static let interval = Duration.milliseconds(200)

  private struct Watched {
    let version: any WatchedVersion
    let checkpoints: any Checkpointed
    /// How often a watch was requested: a version found idle may be in use again since.
    var requestCount = 0
  }

  private struct State {
    var versions: [VersionID: Watched] = [:]
    /// Files and directories with a question to their server.
    var askers: [ObjectIdentifier: any HasDeadline] = [:]
    var isTicking = false
    var suspensions = SuspensionDetector(interval: interval, now: .now)
  }

  private let context: MountContext
  private let checkpoints: CheckpointScheduler
  private let state = Mutex(State())

  init(context: MountContext, checkpoints: CheckpointScheduler) {
    self.context = context
    self.checkpoints = checkpoints
  }

  // MARK: Watched state

  /// Watches `version` until no read waits in it and all of it is committed, by `checkpoints`.
  func watch(_ version: any WatchedVersion, checkpoints: any Checkpointed) {
    watch {
      $0.versions[version.id, default: Watched(version: version, checkpoints: checkpoints)]
        .requestCount += 1
    }
  }

  /// Watches the deadline of `asker`'s question to the server.
  func watch(_ asker: any HasDeadline) { watch { $0.askers[ObjectIdentifier(asker)] = asker } }

  private func watch(_ enter: (inout State) -> Void) {
    let mustStart = state.withLock { state in
      enter(&state)
      let mustStart = !state.isTicking
      state.isTicking = true
      if mustStart { state.suspensions.start(now: .now) }
      return mustStart
    }
    if mustStart { schedule() }
  }

  /// The watched versions.
  private var versions: [any WatchedVersion] {
    state.withLock { $0.versions.values.map(\.version) }
  }

  /// The cached bytes of the watched versions.
  var checkpointed: [any Checkpointed] { state.withLock { $0.versions.values.map(\.checkpoints) } }

  /// The versions in which a read began to wait after `moment`, and still waits.
  func versionsWithReads(since moment: ContinuousClock.Instant) -> Set<VersionID> {
    Set(versions.lazy.filter { $0.lastWaitBegan.map { $0 > moment } ?? false }.map(\.id))
  }

  /// Closes the entries of files without readers, to free their descriptors.
  ///
  /// - Returns: whether there were any.
  func releaseIdleEntries() -> Bool {
    versions.reduce(false) { $1.releaseIdleEntry() || $0 }
  }

  /// Fails every waiting read.
  func abandonReads() { for version in versions { version.abandon() } }

  // MARK: Timers

  private func schedule() {
    context.client.schedule(after: Self.interval) { [self] in tick() }
  }

  private func tick() {
    let now = ContinuousClock.now
    // Taken out first: a question that is asked meanwhile enters itself again.
    let (watched, askers, suspension) = state.withLock { state in
      defer { state.askers = [:] }
      return (
        Array(state.versions.values), Array(state.askers.values), state.suspensions.tick(now: now)
      )
    }
    if let suspension {
      context.logger.notice(
        "suspended; deadlines start again", metadata: ["for": "\(suspension)"])
      context.outages.postpone(by: suspension, now: now)
      for item in watched { item.version.postpone(by: suspension) }
      for asker in askers { asker.postpone(by: suspension) }
    }
    context.storage.divertIfStuck(now: now)
    for asker in askers where asker.expire(now: now) { watch(asker) }
    var idle: [Watched] = []
    let areDescriptorsShort = !context.cache.hasSpareDescriptors
    for item in watched {
      item.version.lookAgainIfDue(now: now)
      item.version.expire(now: now)
      checkpoints.checkpointIfDue(item.checkpoints, now: now)
      item.checkpoints.stampSoon()
      if item.version.isIdle(areDescriptorsShort: areDescriptorsShort) { idle.append(item) }
    }
    let goesOn = state.withLock { state in
      for item in idle where state.versions[item.version.id]?.requestCount == item.requestCount {
        state.versions[item.version.id] = nil
      }
      state.isTicking = !state.versions.isEmpty || !state.askers.isEmpty
      return state.isTicking
    }
    if goesOn { schedule() }
  }
}
