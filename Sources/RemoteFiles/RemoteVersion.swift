internal import ExtentRecord
internal import HTTPTransfer
public import HTTPTransferCore
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

  /// Whether what arrives is hashed by pieces before anybody sees it.
  let hasPieces: Bool

  /// What the whole must hash to; nil where the list says nothing.
  var checksum: Checksum? { file.mirrors?.details.checksum }

  let state: Mutex<Guarded>
  var environment: FileEnvironment { file.environment }

  struct Guarded {
    var version: VersionState
    /// The cache entry: there while a handle is open, a request is in flight or bytes are not
    /// committed, so that idle files hold no descriptors.
    var entry: CacheEntry?
    /// Whether the record under the entry's name is of this version.
    var hasRecord: Bool
    /// What of the extents nobody has looked at since an earlier mount stored it: verified before it
    /// is used.
    var unverified: ExtentSet
    /// What of the record is known to be false, though it stays in the record.
    var refuted = ExtentSet()
    /// What lies in memory because the cache could not take it.
    var spill: Spill?
    /// Whether the entry is not ours to write.
    var isUncacheable = false
    /// What is known of the whole's checksum, where the list has one.
    var wholeCheck = WholeCheck()
    /// How the data file was when the entry was let go of: what is known of its bytes holds while it is so.
    var lastStamp: FileStamp?
    /// Entries that were given up while handles read from their descriptors.
    var retired: [CacheEntry] = []
    var retiredSpills: [Spill] = []
    var openCount = 0
    /// How many others need the entry to stay at hand.
    var holdCount = 0
    /// How many runs of bytes are on their way to the entry.
    var storeCount = 0
    /// Since when no handle has been open.
    var unreadSince = ContinuousClock.now
    var isCheckpointing = false
    var lastCheckpoint = ContinuousClock.now
    var fetchedByteCount: Int64

    /// Bytes that cannot be read are absent.
    mutating func forgetExtentsWithoutEntry() {
      if entry == nil, !version.extents.isEmpty { setCached(ExtentSet(), believed: ExtentSet()) }
    }

    /// Whether bytes of `range` are there of which nobody has looked at yet.
    func mustVerify(_ range: ByteRange) -> Bool { entry != nil && unverified.overlaps(range) }

    /// Makes `cached` what is present, beside what is spilled; of `believed` nobody has seen the
    /// bytes.
    mutating func setCached(_ cached: ExtentSet, believed: ExtentSet) {
      let present = version.extents
      version.extents = cached
      version.pieces?.forgetArrived(but: spill?.extents ?? ExtentSet())
      unverified = believed
      for extent in refuted.extents {
        version.extents.remove(extent)
        unverified.remove(extent)
      }
      for extent in spill?.extents.extents ?? [] {
        // Of pieces, some may have arrived and not been hashed yet.
        for run in version.pieces == nil ? [extent] : present.runs(in: extent) {
          version.extents.insert(run)
        }
        unverified.remove(extent)
      }
    }

    /// The bytes of `range`, which are present; those that are spilled are kept until the lease of
    /// that number ends.
    mutating func locate(
      _ range: ByteRange
    ) -> (pieces: [PresentBytes.Piece], lease: Int?) {
      let cached = entry?.dataDescriptor ?? -1
      guard let spill, spill.extents.overlaps(range) else {
        return ([.init(descriptor: cached, byteCount: Int(range.byteCount))], nil)
      }
      var pieces: [PresentBytes.Piece] = []
      var position = range.lowerBound
      for run in spill.extents.runs(in: range) {
        if position < run.lowerBound {
          pieces.append(.init(descriptor: cached, byteCount: Int(run.lowerBound - position)))
        }
        pieces.append(
          .init(descriptor: spill.file.rawValue, byteCount: Int(run.byteCount)))
        position = run.upperBound
      }
      if position < range.upperBound {
        pieces.append(.init(descriptor: cached, byteCount: Int(range.upperBound - position)))
      }
      return (pieces, self.spill?.beginLease(of: range))
    }

    /// Whether no handle is open, and nothing is in flight or being synced.
    var isUnused: Bool {
      openCount == 0 && holdCount == 0 && storeCount == 0 && version.segments.isEmpty
        && !isCheckpointing
    }

    /// Whether the record of the whole file is still to say that all of its bytes were looked at.
    var awaitsStamp: Bool {
      // The stamp is the last word of a record.
      if wholeCheck.isHashing { return false }
      guard let entry, version.isComplete, unverified.isEmpty, refuted.isEmpty, spill == nil,
        !isUncacheable, !version.isSuperseded,
        version.extents.byteCount >= FileSettings.leastStampedByteCount
      else { return false }
      return entry.awaitsStamp
    }

    /// Whether there is anything to be written to the record.
    var awaitsRecord: Bool { (entry?.uncommittedByteCount ?? 0) > 0 || awaitsStamp }

    /// Hands the entry out to be closed, if nobody needs it any more; one with bytes that are to be
    /// committed, or with a stamp to come, only where its descriptors are needed: whoever opens it next
    /// verifies those.
    mutating func takeIdleEntry(areDescriptorsShort: Bool) -> CacheEntry? {
      guard isUnused else { return nil }
      retired = []
      retiredSpills = []
      if let spill {
        // Memory is for readers only.
        for extent in spill.extents.extents {
          version.extents.remove(extent)
          version.forgetUnverified(extent)
        }
        self.spill = nil
        version.readAheadLimit = nil
      }
      guard let idle = entry, areDescriptorsShort || !awaitsRecord else { return nil }
      entry = nil
      version.pieces?.forgetArrived()
      lastStamp = idle.dataStamp
      return idle
    }
  }

  /// A version that the server has just described, of which the cache holds nothing; or, where there
  /// is a `record`, the one that it describes.
  ///
  /// `id` is its number, where it has been shown under one already.
  init(
    file: RemoteFile, content: ContentVersion, id: VersionID? = nil, record: CacheEntry? = nil,
    mayHaveRecord: Bool = false
  ) {
    self.file = file
    self.content = content
    self.id = id ?? file.environment.nextVersionID()
    var version = VersionState(
      length: content.completeLength, extents: record?.recoveredExtents ?? ExtentSet(),
      connections: file.environment.connections,
      learned: file.environment.learnedConnections(for: file.source.url))
    if let pieces = file.mirrors?.details.pieces, let length = content.completeLength {
      version.pieces = PieceTable(hashes: pieces, length: length)
    }
    hasPieces = version.pieces != nil
    state = Mutex(
      Guarded(
        version: version,
        hasRecord: record != nil || mayHaveRecord,
        unverified: record?.believedExtents ?? ExtentSet(), lastStamp: record?.dataStamp,
        fetchedByteCount: record?.recoveredFetchedByteCount ?? 0))
    if let record { noteRecordedChecksum(record) }
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
    state.withLock { $0.version.absent(in: $0.version.clamped(range)).first }
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

  // MARK: Actions

  /// Takes up what the user has asked for the file, and the number of connections.
  func followWishes() {
    change { [file] in
      // Read under the lock: of two who come at once the later one finds the newer wishes.
      $0.follow(
        file.wishes.withLock { $0 }, connections: file.environment.connections, now: .now,
        into: &$1)
    }
  }

  /// How many of its bytes are present.
  var presentByteCount: Int64 { state.withLock { $0.version.extents.byteCount } }

  /// Whether what arrives is kept in memory, because the cache does not take it.
  var isSpilling: Bool { state.withLock { $0.version.readAheadLimit != nil } }

  /// When the read that has come last began to wait; nil where none waits.
  var lastWaitBegan: ContinuousClock.Instant? {
    state.withLock { $0.version.parked.reads.lazy.map(\.since).max() }
  }

  /// Why a request has failed for good since the last call.
  func takePrefetchFailure() -> FileError? {
    state.withLock { guarded in
      defer { guarded.version.prefetchFailure = nil }
      return guarded.version.prefetchFailure
    }
  }

  /// Ends the requests that no read waits for.
  func endFetching() { change { $0.endUnawaited(now: .now, into: &$1) } }

  func change(_ body: (inout VersionState, inout VersionActions) -> Void) {
    var actions = VersionActions()
    state.withLock { body(&$0.version, &actions) }
    perform(actions)
  }

  func perform(_ actions: VersionActions) {
    if !actions.wakes.isEmpty {
      let wakes = actions.wakes
      let byteCount = wakes.reduce(Int64(0)) { $0 + $1.range.byteCount }
      environment.reply(byteCount: byteCount) { [self] in wake(wakes) }
    }
    for (read, error) in actions.failures { read.reply.fail(error) }
    for writer in actions.flushes {
      environment.client.perform { writer.flushForReader() }
    }
    if let mirrors = file.mirrors {
      // Before they are cancelled, and what they were to bring is asked for anew.
      for (index, error) in actions.silentMirrors { mirrors.failed(index, error) }
    }
    for transfer in actions.cancels { environment.client.cancel(transfer) }
    for transfer in actions.raises { environment.client.prioritize(transfer) }
    if !actions.starts.isEmpty {
      let hedgeCount = actions.starts.count { $0.hedgeOf != nil }
      environment.hedges.withLock {
        $0.noteRequests(actions.starts.count, hedges: hedgeCount)
      }
    }
    for var segment in actions.starts {
      if let mirrors = file.mirrors, !assignMirror(to: &segment, of: mirrors) { continue }
      guard let url = file.place(atMirror: segment.mirror) else {
        let index = segment.mirror
        file.mirrors?.change { $0.ended(index, bytesPerSecond: nil) }
        awaitLocation(segment.id)
        continue
      }
      var request = file.request(
        range: segment.isWhole ? nil : segment.start..<segment.end, at: url,
        mirror: segment.mirror)
      request.priority = segment.isWaitedFor ? .demand : .readAhead
      let receiver = SegmentReceiver(version: self, segment: segment, asked: url)
      let transfer = environment.client.start(request, receiver: receiver)
      state.withLock { $0.version.setTransfer(transfer, of: segment.id) }
    }
    if !actions.checks.isEmpty { hash(actions.checks) }
    if let delay = actions.retryAfter {
      environment.client.schedule(after: delay) { [weak self] in
        self?.change { $0.plan(now: .now, into: &$1) }
      }
    }
    if actions.needsWatch || !actions.starts.isEmpty { environment.watch(self) }
  }

  /// Decides which server of the file the request of `segment` goes to.
  ///
  /// - Returns: whether there is one; if not, the segment has failed.
  private func assignMirror(to segment: inout Segment, of mirrors: MirrorBoard) -> Bool {
    let (id, isUrgent) = (segment.id, segment.isWaitedFor)
    var excluded = segment.excludedMirrors
    if let silent = segment.hedgeOf.flatMap({ id in state.withLock { $0.version.mirror(of: id) } })
    {
      excluded.insert(silent)
    }
    let chosen = mirrors.change { [excluded] set -> Int? in
      let index =
        set.choose(isUrgent: isUrgent, except: excluded, now: .now)
        ?? set.choose(isUrgent: isUrgent, now: .now)
      if let index { set.began(index) }
      return index
    }
    guard let chosen else {
      failed(id, FileError(.refused, "every server of the file has other bytes"))
      return false
    }
    segment.mirror = chosen
    state.withLock { $0.version.setMirror(chosen, of: id) }
    return true
  }

  private func wake(_ reads: [ParkedRead]) {
    for read in reads {
      let range = read.range
      let located = state.withLock { guarded -> ([PresentBytes.Piece], Int?)? in
        let end =
          guarded.version.length.map { min($0, range.upperBound) }
          ?? min(guarded.version.extents.presentEnd(from: range.lowerBound), range.upperBound)
        let present = range.lowerBound..<max(range.lowerBound, end)
        // Nothing is the end of the file, which is not known yet.
        if present.isEmpty, guarded.version.length == nil { return nil }
        guard guarded.version.extents.contains(present), !guarded.mustVerify(present) else {
          return nil
        }
        return guarded.locate(present)
      }
      guard let (pieces, lease) = located else {
        // The cache has failed just now: as if it came anew.
        wait(for: range, reply: read.reply)
        continue
      }
      read.reply.succeed(PresentBytes(of: self, at: range.lowerBound, pieces, lease: lease))
    }
  }
}
