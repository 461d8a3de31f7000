internal import HTTPTransfer
package import HTTPTransferCore
internal import LinuxSystem
internal import RangeCache
internal import Synchronization

/// One version of a remote file, as an inode shows it: its bytes never change.
///
/// Lock order: the file's `entryLock`, or `SpillMemory.writing` → `state` → leaves such as the
/// file's `policy`. `state` is held for decisions only, never over I/O or a reply; the file carries
/// out a decision after the release.
///
/// The type does not know the parts that work on it, such as ``VersionReads`` or ``ByteStorer``:
/// each is made where it is used. For what they do, a decision returns ``VersionActions``, which
/// ``EffectRunner`` carries out.
package final class RemoteVersion: Sendable {
  package let id: VersionID
  /// The version's file, which it keeps alive.
  let home: any VersionHome
  let file: FileContext

  /// Validators, length and coding from the first response; the length may be learned later, see
  /// ``length``.
  package let content: ContentVersion

  /// Whether arriving bytes are hashed by pieces before they are shown.
  let hasPieces: Bool

  /// The checksum that the whole must have; nil if the list has none.
  var checksum: Checksum? { file.mirrors?.details.checksum }

  let state: Mutex<VersionHoldings>
  var environment: MountEnvironment { file.environment }

  /// Creates a version that the server has just described, or the one that a `record` describes.
  ///
  /// Without a `record`, the cache holds no bytes of it. `id` is its number, if it has already been
  /// shown under one.
  init(
    of home: any VersionHome, content: ContentVersion, id: VersionID? = nil,
    record: RecordedEntry? = nil,
    mayHaveRecord: Bool = false
  ) {
    self.home = home
    let file = home.context
    self.file = file
    self.content = content
    self.id = id ?? file.environment.nextVersionID()
    var version = VersionState(
      length: content.completeLength, extents: record?.extents ?? ExtentSet(),
      connections: file.environment.connections,
      learned: file.environment.learnedConnections(for: file.source.url))
    if let pieces = file.mirrors?.details.pieces { version.check(pieces) }
    hasPieces = version.pieces != nil
    var holdings = VersionHoldings(
      version: version,
      hasRecord: record != nil || mayHaveRecord,
      unverified: record?.believed ?? ExtentSet(), lastStamp: record?.dataStamp,
      fetchedByteCount: record?.fetchedByteCount ?? 0)
    holdings.isRecordUnread = record?.hasUnconfirmed ?? false
    if let record, let checksum = file.mirrors?.details.checksum {
      holdings.recordWhole(
        isRight: record.isRecorded(checksum), hasBytes: !record.extents.isEmpty)
    }
    state = Mutex(holdings)
  }

  // MARK: Properties

  /// The path of its file below the mount point.
  package var path: String { file.source.path }

  /// The complete length in bytes, nil while unknown.
  package var length: Int64? { state.withLock { $0.version.length } }

  /// The size that `stat` shows, and whether it is final.
  ///
  /// The size is the length, or while that is unknown, the whole pages that are present from the
  /// start on. Both come from one look, because a body may end at any moment.
  package var visibleSize: (byteCount: Int64, isFinal: Bool) {
    let (size, isFinal, flush) = state.withLock { guarded in
      if let length = guarded.version.length {
        return (length, true, nil as VersionHoldings.Flush?)
      }
      let id = guarded.version.segments.ofUnstoredPages
      return (guarded.version.show(), false, id.flatMap { guarded.flushes[$0] })
    }
    // The next look sees the bytes that have arrived.
    if let flush { environment.client.perform(flush) }
    return (size, isFinal)
  }

  /// Calls `done` when the length is known, or when further waiting does not pay.
  ///
  /// sendfile(2), splice(2) and mappings end where `stat` shows the end: too early while the size
  /// is not final.
  package func awaitLength(
    by deadline: ContinuousClock.Instant, _ done: @escaping @Sendable () -> Void
  ) {
    let now = ContinuousClock.now
    let wait = LengthWait(
      answer: done, deadline: min(deadline, now + FileSettings.confirmationTimeout))
    var mustWait = false
    change { mustWait = $0.awaitLength(wait, now: now, into: &$1) }
    if !mustWait { done() }
  }

  /// Takes the length from the head of a response of this version, if it was unknown.
  func learn(length: Int64?) {
    // Without a validator, nothing proves that the head belongs to these bytes.
    guard let length, content.strength != .unverifiable else { return }
    change { if $0.learn(length: length, into: &$1) { $0.plan(now: .now, into: &$1) } }
  }

  /// The version with everything that was learned of it, for comparison with answers.
  var pinned: ContentVersion {
    var pinned = content
    pinned.completeLength = length ?? pinned.completeLength
    return pinned
  }

  /// Compares the version that a response describes with this one.
  ///
  /// A length shorter than the bytes that are present means another version.
  func compare(_ response: ContentVersion) -> ContentVersion.Comparison {
    admits(response) ? pinned.compare(response) : .different
  }

  /// Whether the file can have the length of `response`.
  func admits(_ response: ContentVersion) -> Bool {
    response.completeLength.map { $0 >= state.withLock { $0.version.content.presentEnd } } ?? true
  }

  /// Whether a validator, or a length that both have, identifies `response` as this version.
  func isIdentified(by response: ContentVersion) -> Bool {
    content.strength != .unverifiable || (response.completeLength != nil && length != nil)
  }

  /// Whether the whole is arriving in one response.
  var isStreaming: Bool { state.withLock { $0.version.segments.isStreaming } }

  /// The first part of `range` that is absent.
  func firstHole(in range: ByteRange) -> ByteRange? {
    state.withLock { $0.version.absent(in: $0.version.clamped(range)).first }
  }

  /// The first part of `range` that is neither present nor on its way to the disk or from the
  /// server.
  ///
  /// A question about the file may bring it along.
  func firstUnrequested(in range: ByteRange) -> ByteRange? {
    state.withLock { $0.version.firstUnrequested(in: range) }
  }

  /// Whether a body that `response` describes consists of this version's bytes.
  ///
  /// Without length and validator there is no proof, unless it is the body that is arriving.
  func canContinue(with response: ContentVersion) -> Bool {
    if state.withLock({ $0.version.content.isEndedShort }) { return false }
    return isIdentified(by: response) || isStreaming
  }

  /// Records that the server answers ranges with the whole, so that it can only be read as a
  /// stream.
  func markSingleStream() { state.withLock { $0.version.markSingleStream() } }

  /// Records an answer with the requested range: an earlier answer with the whole was an
  /// exception.
  ///
  /// A stream that is under way continues as it began.
  func markRanged() { state.withLock { $0.version.markRanged() } }

  /// Whether neither length nor validator distinguishes this version from another.
  var isUnidentified: Bool {
    content.completeLength == nil && content.strength == .unverifiable
  }

  /// Whether every byte is present, in the cache or in memory.
  package var isComplete: Bool { state.withLock { $0.version.isComplete } }

  /// Whether every byte is in the cache, for later mounts too.
  var isCompleteInCache: Bool { state.withLock { $0.version.isComplete && !$0.isPartlyUncached } }

  /// The SHA-256 of the whole in hexadecimal digits, if the list has it and the bytes were
  /// verified.
  package var verifiedSHA256: String? {
    guard let checksum, checksum.algorithm == .sha256,
      state.withLock({ $0.fileChecksum.isRight && $0.version.isComplete })
    else { return nil }
    return checksum.hexadecimal
  }

  /// Whether the cache has a record of it.
  var hasRecord: Bool { state.withLock { $0.hasRecord } }

  /// Whether the cache has bytes of it, even if its entry could not be opened just now.
  var hasCachedBytes: Bool {
    state.withLock { !$0.version.extents.isEmpty || $0.hasRecord && $0.isRecordUnread }
  }

  /// The modification time in seconds since 1970, if the server gives one.
  package var modificationTime: Int64? {
    content.lastModified.flatMap(HTTPDate.secondsSince1970)
  }

  // MARK: Actions

  /// Applies the user's requests for the file, and the number of connections.
  func applyPolicy() {
    change { [file] in
      // Read under the lock: of two concurrent calls the later one finds the newer policy.
      $0.follow(
        file.policy.withLock { $0 }, connections: file.environment.connections, now: .now,
        into: &$1)
    }
  }

  var presentByteCount: Int64 { state.withLock { $0.version.extents.byteCount } }

  /// Whether the whole cannot be fetched now, because the cache cannot store it.
  ///
  /// Bytes that are in memory since the cache failed, or that are in no record, are dropped and
  /// fetched again for the cache. That waits while a read waits, while the bytes are being hashed,
  /// or while the disk hangs or descriptors are short, because new bytes would go to memory, too.
  func isKeptFromCache() -> Bool {
    let mayStore = environment.health.mayStore()
    let isStuck = environment.storage.isStuck || !environment.cache.hasBorrowableDescriptors
    var isKept = false
    transact { guarded, actions in
      guard mayStore, !guarded.isUncacheable else {
        isKept = guarded.version.pacing.readAheadLimit != nil || !guarded.unclaimed.isEmpty
        return
      }
      guard !isStuck, guarded.spill != nil || !guarded.unclaimed.isEmpty,
        guarded.version.parked.isEmpty, guarded.holdCount == 0
      else { return }
      guarded.dropSpill()
      for run in guarded.unclaimed.extents { _ = guarded.loseCached(run) }
      guarded.version.plan(now: .now, into: &actions)
    }
    return isKept
  }

  /// When the most recent read began to wait; nil if none waits.
  var lastWaitBegan: ContinuousClock.Instant? {
    state.withLock { $0.version.parked.lastWaitBegan }
  }

  /// Why a request has failed permanently since the last call.
  func takePrefetchFailure() -> FileError? {
    state.withLock { $0.version.takePrefetchFailure() }
  }

  /// Ends the requests that no read waits for.
  func endFetching() { change { $0.endUnawaited(now: .now, into: &$1) } }

  func change(_ body: (inout VersionState, inout VersionActions) -> Void) {
    transact { body(&$0.version, &$1) }
  }

  /// Does the same as ``change(_:)`` for everything that the lock guards.
  @discardableResult
  func transact<Result>(_ body: (inout VersionHoldings, inout VersionActions) -> Result) -> Result {
    let (result, effects) = state.withLock { guarded in
      var actions = VersionActions()
      let result = body(&guarded, &actions)
      // Under the same lock, so that the bytes are not dropped before the reply.
      return (result, guarded.resolve(actions))
    }
    home.perform(effects, of: self)
    return result
  }
}
