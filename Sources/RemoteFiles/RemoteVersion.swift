internal import ExtentRecord
internal import HTTPTransfer
public import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// One version of a remote file, as an inode shows it: its bytes never change.
///
/// Lock order: the file's `loading` → `state`; `state` is held for decisions only, never over I/O, a reply or
/// a call into another object. What a decision asks for is done by `perform`, after the release.
public final class RemoteVersion: Sendable {
  public let id: VersionID
  public let file: RemoteFile

  /// Validators, length and coding as the first response gave them; the length may be learned
  /// later, see ``length``.
  public let content: ContentVersion

  private let state: Mutex<Guarded>
  private var environment: FileEnvironment { file.environment }

  private struct Guarded {
    var version: VersionState
    /// The cache entry: there while a handle is open, a request is in flight or bytes are not
    /// committed, so that idle files hold no descriptors.
    var entry: CacheEntry?
    /// Whether the record under the entry's name is of this version.
    var hasRecord: Bool
    /// Entries that were given up while handles read from their descriptors.
    var retired: [CacheEntry] = []
    var openCount = 0
    /// Since when no handle has been open.
    var unreadSince = ContinuousClock.now
    var isCheckpointing = false
    var lastCheckpoint = ContinuousClock.now
    var fetchedByteCount: Int64

    /// Bytes that cannot be read are absent.
    mutating func forgetExtentsWithoutEntry() {
      if entry == nil, !version.extents.isEmpty { version.extents = ExtentSet() }
    }

    /// Hands the entry out to be closed, if nobody needs it any more.
    mutating func takeIdleEntry() -> CacheEntry? {
      guard openCount == 0, version.segments.isEmpty, !isCheckpointing else { return nil }
      retired = []
      guard let idle = entry, idle.uncommittedByteCount == 0 else { return nil }
      entry = nil
      return idle
    }
  }

  /// A version that the server has just described, of which the cache holds nothing; or, where there
  /// is a `record`, the one that it describes.
  init(
    file: RemoteFile, content: ContentVersion, record: CacheEntry? = nil,
    mayHaveRecord: Bool = false
  ) {
    self.file = file
    self.content = content
    id = file.environment.nextVersionID()
    state = Mutex(
      Guarded(
        version: VersionState(
          length: content.completeLength, extents: record?.recoveredExtents ?? ExtentSet(),
          connections: file.environment.settings.connections),
        hasRecord: record != nil || mayHaveRecord,
        fetchedByteCount: record?.recoveredFetchedByteCount ?? 0))
  }

  // MARK: Facts

  /// The complete length in bytes, nil while unknown.
  public var length: Int64? { state.withLock { $0.version.length } }

  /// What `stat` shows: the length, or the bytes that have arrived so far while it is unknown, and
  /// never 0 then, which tools would take for an empty file.
  public var visibleByteCount: Int64 {
    state.withLock { $0.version.length ?? max(1, $0.version.arrivedEnd) }
  }

  /// Whether the whole is arriving in one response.
  var isStreaming: Bool { state.withLock { $0.version.segments.contains { $0.isWhole } } }

  /// The part of `range` that a question about the file may as well bring: its first hole.
  func firstHole(in range: ByteRange) -> ByteRange? {
    state.withLock { $0.version.extents.firstHole(in: $0.version.clamped(range)) }
  }

  /// Whether a body that `response` describes is of these bytes.
  ///
  /// Without length and validator nothing shows that it is, unless it is the body that is arriving.
  func canContinue(with response: ContentVersion) -> Bool {
    guard response.completeLength == nil, response.strength == .unverifiable else { return true }
    return isStreaming
  }

  /// The server answers ranges with the whole: there is one way only to read it.
  func markSequential() { state.withLock { $0.version.isSequential = true } }

  /// Whether neither length nor validator tells this version from another.
  var isUnidentified: Bool {
    content.completeLength == nil && content.strength == .unverifiable
  }

  /// Whether every byte is in the cache.
  public var isComplete: Bool { state.withLock { $0.version.isComplete } }

  var hasCachedBytes: Bool { state.withLock { !$0.version.extents.isEmpty } }

  /// The modification time in seconds since 1970, where the server gives one.
  public var modificationTime: Int64? {
    content.lastModified.flatMap(HTTPDate.secondsSince1970)
  }

  /// A copy of the state, for displays.
  func snapshot() -> VersionState { state.withLock { $0.version } }

  // MARK: Handles

  /// A handle has been opened: the cache entry is at hand until the last one is closed.
  ///
  /// - Throws: `cacheFailed` where the cache cannot be opened.
  public func retainHandle() throws(FileError) {
    // Counted first: from then on nobody lets go of an entry that is at hand.
    state.withLock { $0.openCount += 1 }
    do throws(FileError) {
      try file.loading.withLock { (_) throws(FileError) in try loadEntry(create: false) }
    } catch {
      releaseHandle()
      throw error
    }
  }

  public func releaseHandle() {
    var actions = VersionActions()
    let released = state.withLock { guarded in
      guarded.openCount -= 1
      if guarded.openCount == 0 {
        guarded.unreadSince = .now
        // Reads that were interrupted: nobody waits for their bytes any more.
        guarded.version.dropParked(into: &actions)
      }
      return guarded.takeIdleEntry()
    }
    drop(released)
    perform(actions)
  }

  /// Opens or creates the entry if it is not at hand.
  ///
  /// Call under the file's `loading`.
  private func loadEntry(create: Bool) throws(FileError) {
    let (isAtHand, isSuperseded, hasRecord) = state.withLock {
      ($0.entry != nil, $0.version.isSuperseded, $0.hasRecord)
    }
    // The entry's name belongs to the newer version when there is one. Before the first byte of a
    // version is stored it belongs to an older one, whatever that one looks like.
    if isAtHand || isSuperseded || !(hasRecord || create) { return }
    do throws(CacheError) {
      let key = file.cacheKey
      var entry = hasRecord ? try environment.cache.openEntry(key) : nil
      if let found = entry, !content.hasSameIdentity(as: found.recoveredVersion) { entry = nil }
      if entry == nil, create {
        entry = try environment.cache.createEntry(
          key, version: content, source: file.source.url.redacted)
      }
      let found = entry
      let isTaken = state.withLock { guarded in
        guard !guarded.version.isSuperseded else { return false }
        guarded.entry = found
        guarded.hasRecord = found != nil
        // The record is right, whatever was known before: the entry may have been evicted.
        guarded.version.extents = found?.recoveredExtents ?? ExtentSet()
        guarded.version.length = guarded.version.length ?? found?.recoveredVersion.completeLength
        return found != nil
      }
      guard isTaken else { return }
      environment.retain(key, by: self)
      // What a crash has left uncommitted is committed in the course of things.
      if (found?.uncommittedByteCount ?? 0) > 0 { environment.watch(self) }
    } catch {
      throw FileError(error)
    }
  }

  /// The entry to write to; created with the first bytes of a version.
  func writableEntry() throws(FileError) -> CacheEntry {
    if let entry = state.withLock({ $0.entry }) { return entry }
    try file.loading.withLock { (_) throws(FileError) in try loadEntry(create: true) }
    guard let entry = state.withLock({ $0.entry }) else {
      throw FileError(.stale, "the remote file has changed")
    }
    return entry
  }

  /// The cache has removed the entry while it was not open.
  func evicted() {
    state.withLock { guarded in
      if guarded.entry == nil { guarded.version.extents = ExtentSet() }
    }
  }

  private func drop(_ entry: CacheEntry?) {
    guard entry != nil else { return }
    environment.release(file.cacheKey)
  }

  // MARK: Reads

  /// The descriptor of the cache file while a handle is open, for passthrough.
  public var dataDescriptor: CInt? { state.withLock { $0.entry?.dataDescriptor } }

  /// Says what can be answered at once; on a libfuse thread, with a handle open.
  ///
  /// Bytes that are present are to be read from the descriptor, which stays valid while the handle
  /// is open.
  public func attempt(_ range: ByteRange) -> (attempt: ReadAttempt, descriptor: CInt) {
    var actions = VersionActions()
    let result = state.withLock { guarded in
      let now = ContinuousClock.now
      guarded.version.note(range, now: now)
      guarded.forgetExtentsWithoutEntry()
      let attempt = guarded.version.attempt(range, now: now)
      if case .present = attempt { guarded.version.plan(now: now, into: &actions) }
      return (attempt, guarded.entry?.dataDescriptor ?? -1)
    }
    perform(actions)
    return result
  }

  /// Parks a read whose bytes are absent until they are there or its deadline has passed.
  public func wait(for range: ByteRange, reply: any ReadReply) {
    var actions = VersionActions()
    let now = ContinuousClock.now
    let attempt = state.withLock { guarded -> (ReadAttempt, CInt) in
      guarded.forgetExtentsWithoutEntry()
      // They may have arrived since the attempt.
      let attempt = guarded.version.attempt(range, now: now)
      if case .absent = attempt {
        guarded.version.park(
          ParkedRead(
            range: guarded.version.clamped(range), reply: reply, since: now,
            deadline: now + environment.settings.readTimeout),
          into: &actions)
        guarded.version.plan(now: now, into: &actions)
        actions.needsWatch = true
      }
      return (attempt, guarded.entry?.dataDescriptor ?? -1)
    }
    switch attempt.0 {
    case .present(let byteCount):
      reply.succeed(descriptor: attempt.1, offset: range.lowerBound, byteCount: byteCount)
    case .failed(let error): reply.fail(error)
    case .absent: break
    }
    perform(actions)
  }

  // MARK: Segments

  /// Enters a request that a contact with the server has brought: the first bytes of the file, or
  /// the whole of it.
  func adoptSegment(range: ByteRange, isWhole: Bool, transfer: ExchangeID) -> SegmentID {
    let segment = state.withLock { guarded in
      if isWhole { guarded.version.isSequential = true }
      let segment = guarded.version.addSegment(range: range, isWhole: isWhole, now: .now)
      guarded.version.setTransfer(transfer, of: segment.id)
      return segment
    }
    environment.watch(self)
    return segment.id
  }

  /// Makes the writer of a segment known to those who will wait for its bytes.
  func setWriter(_ writer: SegmentWriter, of id: SegmentID) {
    state.withLock { $0.version.setWriter(writer, of: id) }
  }

  /// The parts of `range` that are absent: what a writer stores of what it has.
  func holes(in range: ByteRange) -> [ByteRange] {
    state.withLock { $0.version.extents.holes(in: range) }
  }

  func advance(_ id: SegmentID, to position: Int64) -> VersionState.Advice? {
    state.withLock { guarded in
      let advice = guarded.version.advance(id, to: position, now: .now)
      // A stream that nobody reads goes on for a while only: it may have no end.
      if guarded.openCount == 0, guarded.version.parked.isEmpty,
        position > FileSettings.unreadStreamByteCount, guarded.version.isWhole(id),
        ContinuousClock.now - guarded.unreadSince > FileSettings.unreadStreamPatience
      {
        return nil
      }
      return advice
    }
  }

  func stored(_ id: SegmentID, _ range: ByteRange) {
    let idle = environment.client.idleSeconds
    change { $0.stored(id, range, idle: idle, now: .now, into: &$1) }
    environment.checkpointIfDue(self, now: .now)
  }

  /// The server has answered a range with the whole representation.
  ///
  /// - Returns: whether to take the whole from now on; false where the range is to be tried again,
  ///   because ranges have worked before and this may be one server's fault of many.
  func rangeIgnored(_ id: SegmentID) -> Bool {
    var actions = VersionActions()
    let takesWhole = state.withLock { guarded in
      guarded.version.ignoredRangeCount += 1
      let rangesWorked = !guarded.version.extents.isEmpty
      guard !rangesWorked || guarded.version.ignoredRangeCount > 2 else { return false }
      guard !guarded.version.isSequential else { return false }
      guarded.version.isSequential = true
      // One stream brings all; the others would bring the same.
      actions.cancels = guarded.version.segments.filter { $0.id != id }.compactMap(\.transfer)
      guarded.version.removeSegment(id)
      return true
    }
    perform(actions)
    return takesWhole
  }

  /// The body has ended and with it the file, whose length was unknown.
  func ended(at length: Int64) {
    if let entry = state.withLock({ $0.entry }) {
      do throws(CacheError) {
        try entry.recordCompleteLength(length)
      } catch {
        environment.logger.warning(
          "cannot record the length",
          metadata: ["file": "\(file.source.path)", "error": "\(error)"])
      }
    }
    change { $0.setLength(length, into: &$1) }
  }

  /// A request brought all that it was to bring.
  func finished(_ id: SegmentID) {
    releaseRecordIfUnread()
    change {
      $0.removeSegment(id)
      $0.ignoredRangeCount = 0
      $0.plan(now: .now, into: &$1)
    }
  }

  /// A file that was only looked at holds one descriptor until its bytes are committed, not two.
  private func releaseRecordIfUnread() {
    let entry = state.withLock { guarded in
      guarded.openCount == 0 && guarded.version.segments.count <= 1 ? guarded.entry : nil
    }
    entry?.releaseRecord()
  }

  /// A request ended early; `error` nil when it was ended on purpose.
  func failed(_ id: SegmentID, _ error: FileError?, retryAfter: Duration? = nil) {
    guard let error else { return finished(id) }
    switch error.code {
    case .stale:
      change { version, _ in version.removeSegment(id) }
      file.versionContradicted(self)
    case .unreachable, .timedOut, .invalidResponse, .unavailable:
      file.noteFailure(error, isRetried: true)
      change { [policy = environment.retryPolicy] in
        $0.removeSegment(id)
        $0.retryLater(
          after: error, retryAfter: retryAfter, policy: policy, random: .random(in: 0..<1),
          now: .now, into: &$1)
      }
    case .missing, .denied, .refused, .cacheFull, .cacheFailed, .unmounted:
      file.noteFailure(error, isRetried: false)
      change {
        $0.removeSegment(id)
        $0.failParked(error, now: .now, into: &$1)
      }
    }
  }

  func supersede() { change { $0.supersede(into: &$1) } }

  /// The server has confirmed this version after all (a host of several that disagree).
  func reinstate() { state.withLock { $0.version.isSuperseded = false } }

  func noteRoundTrip(_ duration: Duration) {
    let seconds = duration / .seconds(1)
    state.withLock { $0.version.roundTrip = $0.version.roundTrip * 0.7 + seconds * 0.3 }
  }

  /// Fails whatever waits: the mount ends.
  func abandon() {
    let error = FileError(.unmounted, "the mount is being taken down")
    change {
      $0.permanentFailure = error
      $0.failParked(error, now: .now, into: &$1)
    }
  }

  func expire(now: ContinuousClock.Instant) {
    let settings = environment.settings
    var failure: FileError?
    change {
      $0.expire(now: now, settings: settings, into: &$1)
      failure = $1.failures.first?.error
    }
    if let failure { file.noteFailure(failure, isRetried: false) }
  }

  // MARK: Actions

  private func change(_ body: (inout VersionState, inout VersionActions) -> Void) {
    var actions = VersionActions()
    state.withLock { body(&$0.version, &actions) }
    perform(actions)
  }

  private func perform(_ actions: VersionActions) {
    if !actions.wakes.isEmpty { wake(actions.wakes) }
    for (read, error) in actions.failures { read.reply.fail(error) }
    for writer in actions.flushes {
      environment.client.perform { writer.flushForReader() }
    }
    for transfer in actions.cancels { environment.client.cancel(transfer) }
    for segment in actions.starts {
      let receiver = SegmentReceiver(version: self, segment: segment)
      let transfer = environment.client.start(
        file.request(range: segment.isWhole ? nil : segment.start..<segment.end),
        receiver: receiver)
      state.withLock { $0.version.setTransfer(transfer, of: segment.id) }
    }
    if let delay = actions.retryAfter {
      environment.client.schedule(after: delay) { [weak self] in
        self?.change { $0.plan(now: .now, into: &$1) }
      }
    }
    if actions.needsWatch || !actions.starts.isEmpty { environment.watch(self) }
  }

  private func wake(_ reads: [ParkedRead]) {
    let (entry, length, extents) = state.withLock {
      ($0.entry, $0.version.length, $0.version.length == nil ? $0.version.extents : nil)
    }
    for read in reads {
      let range = read.range
      let end =
        length.map { min($0, range.upperBound) }
        ?? min(extents?.presentEnd(from: range.lowerBound) ?? 0, range.upperBound)
      read.reply.succeed(
        descriptor: entry?.dataDescriptor ?? -1, offset: range.lowerBound,
        byteCount: Int(max(0, end - range.lowerBound)))
    }
  }

  // MARK: Durability

  /// A checkpoint that has begun: what it is of.
  struct CheckpointTicket: Sendable {
    let entry: CacheEntry
    let fetchedByteCount: Int64
  }

  /// Whether nothing waits, is in flight or is uncommitted; drops the entry if so.
  var isIdle: Bool {
    let (idle, entry) = state.withLock { guarded -> (Bool, CacheEntry?) in
      guard !guarded.version.needsWatch, !guarded.isCheckpointing,
        (guarded.entry?.uncommittedByteCount ?? 0) == 0
      else { return (false, nil) }
      return (true, guarded.takeIdleEntry())
    }
    drop(entry)
    return idle
  }

  func beginCheckpoint(
    now: ContinuousClock.Instant, byteCount: Int64, interval: Duration
  ) -> CheckpointTicket? {
    state.withLock { guarded in
      guard let entry = guarded.entry, !guarded.isCheckpointing else { return nil }
      let uncommitted = entry.uncommittedByteCount
      guard
        uncommitted >= byteCount
          || uncommitted > 0 && now - guarded.lastCheckpoint >= interval
      else { return nil }
      guarded.isCheckpointing = true
      guarded.lastCheckpoint = now
      return CheckpointTicket(entry: entry, fetchedByteCount: guarded.fetchedByteCount)
    }
  }

  /// The first step, on the disk queue; nil where it failed.
  func syncData(_ ticket: CheckpointTicket) -> Checkpoint? {
    do throws(CacheError) {
      return try ticket.entry.syncData()
    } catch {
      checkpointFailed(error, of: ticket.entry)
      return nil
    }
  }

  /// The second step, on the network thread, which alone appends to the record.
  func commit(_ ticket: CheckpointTicket, _ checkpoint: Checkpoint) {
    do throws(CacheError) {
      try ticket.entry.appendCommit(checkpoint, fetchedByteCount: ticket.fetchedByteCount)
    } catch {
      checkpointFailed(error, of: ticket.entry)
    }
  }

  /// The last step, on the disk queue.
  func finishCheckpoint(_ ticket: CheckpointTicket) {
    do throws(CacheError) {
      try ticket.entry.syncRecord()
    } catch {
      checkpointFailed(error, of: ticket.entry)
    }
    endCheckpoint()
  }

  func endCheckpoint() { state.withLock { $0.isCheckpointing = false } }

  /// What a failed fdatasync of `failed` has left is unknown: everything uncommitted is given up.
  ///
  /// On the network thread, where nothing is stored meanwhile.
  private func discardUncommitted(of failed: CacheEntry) {
    file.loading.withLock { _ in
      let isCurrent = state.withLock { guarded in
        guard guarded.entry === failed, !guarded.version.isSuperseded else { return false }
        // Like a handle, so that nobody lets go of the entry meanwhile.
        guarded.openCount += 1
        return true
      }
      guard isCurrent else { return }
      var fresh: CacheEntry?
      var isReadable = true
      do throws(CacheError) {
        fresh = try environment.cache.openEntry(file.cacheKey, uncommitted: .discard)
      } catch {
        isReadable = false
      }
      state.withLock { guarded in
        guarded.openCount -= 1
        guarded.retired.append(failed)
        guarded.entry = fresh
        guarded.hasRecord = fresh != nil || !isReadable
        guarded.version.extents = fresh?.recoveredExtents ?? ExtentSet()
      }
      if fresh == nil { environment.release(file.cacheKey) }
    }
  }

  private func checkpointFailed(_ error: CacheError, of entry: CacheEntry) {
    if error.code == .syncFailed {
      environment.client.perform { [self] in discardUncommitted(of: entry) }
    }
    file.noteFailure(FileError(error), isRetried: false)
    environment.logger.error(
      "cannot commit to the cache", metadata: ["file": "\(file.source.path)", "error": "\(error)"])
  }

  func commitFinally() {
    guard let ticket = beginCheckpoint(now: .now, byteCount: 1, interval: .zero) else { return }
    guard let checkpoint = syncData(ticket) else { return endCheckpoint() }
    commit(ticket, checkpoint)
    finishCheckpoint(ticket)
  }

  func noteFetched(_ byteCount: Int) {
    state.withLock { $0.fetchedByteCount += Int64(byteCount) }
  }
}
