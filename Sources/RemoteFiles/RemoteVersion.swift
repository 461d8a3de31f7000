internal import HTTPTransfer
public import HTTPTransferCore
internal import LinuxSystem
internal import RangeCache
internal import Synchronization

/// One version of a remote file, as an inode shows it: its bytes never change.
///
/// Lock order: the file's `loading` → `state` → leaves such as the file's `wishes`. `state` is held
/// for decisions only, never over I/O or a reply; the file does what a decision asks for, after the
/// release.
///
/// It knows none of the parts that work on it: each adds its entry point in its own file.
public final class RemoteVersion: Sendable {
  public let id: VersionID
  /// The file that it is a version of, and keeps alive.
  let home: any VersionHome
  let file: FileContext

  /// Validators, length and coding as the first response gave them; the length may be learned
  /// later, see ``length``.
  public let content: ContentVersion

  /// Whether what arrives is hashed by pieces before anybody sees it.
  let hasPieces: Bool

  /// What the whole must hash to; nil where the list says nothing.
  var checksum: Checksum? { file.mirrors?.details.checksum }

  let state: Mutex<VersionHoldings>
  var environment: MountEnvironment { file.environment }

  /// A version that the server has just described, of which the cache holds nothing; or, where there
  /// is a `record`, the one that it describes.
  ///
  /// `id` is its number, where it has been shown under one already.
  init(
    of home: any VersionHome, content: ContentVersion, id: VersionID? = nil,
    record: CacheEntry? = nil,
    mayHaveRecord: Bool = false
  ) {
    self.home = home
    let file = home.context
    self.file = file
    self.content = content
    self.id = id ?? file.environment.nextVersionID()
    var version = VersionState(
      length: content.completeLength, extents: record?.recoveredExtents ?? ExtentSet(),
      connections: file.environment.connections,
      learned: file.environment.learnedConnections(for: file.source.url))
    if let pieces = file.mirrors?.details.pieces { version.check(pieces) }
    hasPieces = version.pieces != nil
    var holdings = VersionHoldings(
      version: version,
      hasRecord: record != nil || mayHaveRecord,
      unverified: record?.believedExtents ?? ExtentSet(), lastStamp: record?.dataStamp,
      fetchedByteCount: record?.recoveredFetchedByteCount ?? 0)
    if let record, let checksum = file.mirrors?.details.checksum {
      holdings.noteRecord(of: record, saysWhole: record.isRecorded(checksum))
    }
    state = Mutex(holdings)
  }

  // MARK: Facts

  /// The path of its file below the mount point.
  public var path: String { file.source.path }

  /// The complete length in bytes, nil while unknown.
  public var length: Int64? { state.withLock { $0.version.length } }

  /// What `stat` shows, and whether that may be remembered: the length, or while it is unknown the whole pages
  /// that are present from the start on.
  ///
  /// Both from one look: a body may end at any moment.
  public var visibleSize: (byteCount: Int64, isFinal: Bool) {
    let (size, isFinal, flush) = state.withLock { guarded in
      if let length = guarded.version.length {
        return (length, true, nil as VersionHoldings.Flush?)
      }
      let id = guarded.version.segments.ofUnstoredPages
      return (guarded.version.show(), false, id.flatMap { guarded.flushes[$0] })
    }
    // What has arrived is there for the next look.
    if let flush { environment.client.perform(flush) }
    return (size, isFinal)
  }

  /// Calls `done` when the length is known, or has been waited for as long as it pays.
  ///
  /// sendfile(2), splice(2) and mappings go to the end that `stat` shows: while it is not that of the file, they
  /// end early.
  public func awaitLength(
    by deadline: ContinuousClock.Instant, _ done: @escaping @Sendable () -> Void
  ) {
    let now = ContinuousClock.now
    let wait = LengthWait(
      answer: done, deadline: min(deadline, now + FileSettings.confirmationPatience))
    var mustWait = false
    change { mustWait = $0.awaitLength(wait, now: now, into: &$1) }
    if !mustWait { done() }
  }

  /// The version with all that has been learned of it: what answers are compared with.
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

  /// Whether the file can be as long as `response` says.
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

  /// The first part of `range` that is neither present nor on its way, be it to the disk: what a question
  /// about the file may as well bring.
  func firstUnrequested(in range: ByteRange) -> ByteRange? {
    state.withLock { $0.version.firstUnrequested(in: range) }
  }

  /// Whether a body that `response` describes is of these bytes.
  ///
  /// Without length and validator nothing shows that it is, unless it is the body that is arriving.
  func canContinue(with response: ContentVersion) -> Bool {
    if state.withLock({ $0.version.content.isEndedShort }) { return false }
    return isIdentified(by: response) || isStreaming
  }

  /// The server answers ranges with the whole: there is one way only to read it.
  func markSequential() { state.withLock { $0.version.markSequential() } }

  /// The server has answered a range with that range: an earlier answer with the whole was an exception.
  ///
  /// A stream that is under way goes on as it was begun.
  func markRanged() { state.withLock { $0.version.markRanged() } }

  /// Whether neither length nor validator tells this version from another.
  var isUnidentified: Bool {
    content.completeLength == nil && content.strength == .unverifiable
  }

  /// Whether every byte is present, be it in memory.
  public var isComplete: Bool { state.withLock { $0.version.isComplete } }

  /// Whether every byte is in the cache, for later mounts too.
  var isCompleteInCache: Bool { state.withLock { $0.version.isComplete && !$0.isPartlyUncached } }

  /// The SHA-256 of the whole in hexadecimal digits, where the list says it and the bytes were found to have
  /// it.
  public var verifiedSHA256: String? {
    guard let checksum, checksum.algorithm == .sha256,
      state.withLock({ $0.wholeCheck.isRight && $0.version.isComplete })
    else { return nil }
    return checksum.hexadecimal
  }

  /// Whether the cache has a record of it.
  var hasRecord: Bool { state.withLock { $0.hasRecord } }

  /// Whether the cache has bytes of it, be it that its entry could not be opened just now.
  var hasCachedBytes: Bool {
    state.withLock { !$0.version.extents.isEmpty || $0.hasRecord && $0.isRecordUnread }
  }

  /// The modification time in seconds since 1970, where the server gives one.
  public var modificationTime: Int64? {
    content.lastModified.flatMap(HTTPDate.secondsSince1970)
  }

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

  /// Whether the whole cannot be fetched now, because the cache does not take it.
  ///
  /// What lies in memory from a time when it did not, or in no record, is fetched again, for the cache, unless
  /// a read waits, the disk stands still or descriptors are short: then that would come to lie in memory, too.
  /// Nor while it is being hashed.
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

  /// When the read that has come last began to wait; nil where none waits.
  var lastWaitBegan: ContinuousClock.Instant? {
    state.withLock { $0.version.parked.lastWaitBegan }
  }

  /// Why a request has failed for good since the last call.
  func takePrefetchFailure() -> FileError? {
    state.withLock { $0.version.takePrefetchFailure() }
  }

  /// Ends the requests that no read waits for.
  func endFetching() { change { $0.endUnawaited(now: .now, into: &$1) } }

  func change(_ body: (inout VersionState, inout VersionActions) -> Void) {
    transact { body(&$0.version, &$1) }
  }

  /// As ``change(_:)``, over all that the lock guards.
  @discardableResult
  func transact<Result>(_ body: (inout VersionHoldings, inout VersionActions) -> Result) -> Result {
    let (result, effects) = state.withLock { guarded in
      var actions = VersionActions()
      let result = body(&guarded, &actions)
      // Under the same lock, so that nobody gives the bytes up before the reply.
      return (result, guarded.resolve(actions))
    }
    home.perform(effects, of: self)
    return result
  }
}
