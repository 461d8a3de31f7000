internal import DirectoryListing
internal import Dispatch
internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes
internal import Logging
package import MountStatus
internal import RangeCache
internal import Synchronization

/// A directory of the mount whose names are those of a directory listing.
///
/// The listing is fetched when the names are wanted, and again when it is old. Files and
/// subdirectories are created when they are first looked up, or looked at ahead, and stay when the
/// names are fetched again. The ``ListingRegistry`` bounds how many are kept; beyond that they live
/// for as long as the kernel knows them (`InodeTable`) or another reference exists.
///
/// Lock order: `state`, then that of ``CacheKeyOwners`` or of a file, or of a directory below of
/// which it had the last reference; no other lock, call or waiter under it.
package final class ListedDirectory: Sendable {
  package let source: ListingSource
  package let environment: FileEnvironment
  /// How many directories of the same listing lie above it.
  private let depth: Int
  private let state: Mutex<State>

  private struct State {
    var names: ListingState
    var files = LookedAt<RemoteFile>()
    var directories = LookedAt<ListedDirectory>()
    var ahead = PreloadWindow()

    /// The memory that all of it needs, estimated.
    var byteCount: Int { (names.names?.byteCount ?? 0) + files.byteCount + directories.byteCount }

    /// The files that the last listing names; all of them if there are no names.
    var listedFiles: [(key: PathKey, item: RemoteFile)] {
      guard let listing = names.names?.listing else { return files.all }
      return files.all.filter { listing[$0.key.text]?.isDirectory == false }
    }

    /// The directories that the last listing names; all of them if there are no names.
    var listedDirectories: [(key: PathKey, item: ListedDirectory)] {
      guard let listing = names.names?.listing else { return directories.all }
      return directories.all.filter { listing[$0.key.text]?.isDirectory == true }
    }
  }

  /// The file or directory of a name.
  package enum Child: Sendable {
    case file(RemoteFile)
    case directory(ListedDirectory)
  }

  package convenience init(source: ListingSource, environment: FileEnvironment) {
    self.init(source: source, environment: environment, depth: 0)
  }

  private init(source: ListingSource, environment: FileEnvironment, depth: Int) {
    self.source = source
    self.environment = environment
    self.depth = depth
    let settings = ListingState.Settings(
      timeToLive: environment.settings.listingTimeToLive,
      timeout: environment.settings.readTimeout)
    state = Mutex(State(names: ListingState(settings: settings)))
  }

  deinit {
    let files = state.withLock { $0.files.all.map(\.item) }
    Self.letGo(files, in: environment)
  }

  /// Makes `files` release their versions, each of which holds its file.
  ///
  /// This runs later: it may close a cache entry, which may wait for the disk.
  private static func letGo(_ files: [RemoteFile], in environment: FileEnvironment) {
    guard !files.isEmpty else { return }
    environment.background { for file in files { file.letGo() } }
  }

  // MARK: Names

  /// The directory's names: the known ones while they are recent enough, otherwise the server's
  /// current list.
  ///
  /// Answers immediately, on the network thread in case of an error, or on the queue that reads
  /// listings.
  package func names(_ answer: @escaping @Sendable (Result<ListedNames, FileError>) -> Void) {
    let isSilent = environment.shared.silentServers.contains(source.url.origin)
    let decision = state.withLock {
      $0.names.want(now: .now, isSilent: isSilent, answer)
    }
    switch decision {
    case .known(let result): answer(result)
    case .joined: break
    case .ask(let id):
      environment.shared.clock.watch(self)
      send(id)
    }
  }

  /// Whether `name` is hidden here, whatever the server lists.
  package func hides(_ name: String) -> Bool { environment.settings.hiddenNames.contains(name) }

  /// The file or directory of `name`; nil if it is not among `names`.
  package func child(_ name: String, in names: ListedNames) -> Child? {
    guard let entry = names.listing[name] else { return nil }
    return child(entry, in: names)
  }

  private func child(_ entry: ListingEntry, in names: ListedNames) -> Child? {
    let (child, hasGrown) = state.withLock { state -> (Child?, Bool) in
      let before = state.byteCount
      let found = look(at: entry, in: names, &state)
      return (found, state.byteCount > before)
    }
    if hasGrown { recordHeld() }
    return child
  }

  /// Reports the memory in use to the registry; call it without a lock.
  private func recordHeld() {
    environment.listings.note(self, byteCount: state.withLock { $0.byteCount })
  }

  /// Looks into the cache for the files after `name` if lookups follow the order of `names`.
  ///
  /// Their own lookups then find the answer. Call it with each lookup.
  package func preloadCache(from name: String, in names: ListedNames) {
    guard let index = names.listing.index(of: name) else { return }
    let ahead = state.withLock { $0.ahead.names(from: index, of: names.entries.count) }
    for entry in names.entries[ahead] where !entry.isDirectory {
      if case .file(let file) = child(entry, in: names) { file.preloadCache() }
    }
  }

  /// The files among `names` about which neither cache, server nor listing has said anything yet,
  /// in the order of the listing.
  package func unknownFiles(in names: ListedNames) -> FileWalk {
    FileWalk(count: names.entries.count) { [self] index in
      let entry = names.entries[index]
      guard !entry.isDirectory, facts(of: entry) == nil,
        case .file(let file) = child(entry, in: names), !file.isKnown
      else { return nil }
      return file
    }
  }

  private func look(
    at entry: ListingEntry, in names: ListedNames, _ state: inout State
  ) -> Child? {
    guard let url = names.url(of: entry) else { return nil }
    let path = source.path(of: entry.name)
    let key = PathKey(entry.name)
    if entry.isDirectory {
      let source = ListingSource(path: path, url: url, fields: source.fields)
      let directory: ListedDirectory
      if let known = state.directories[key], known.source == source {
        directory = known
      } else {
        directory = ListedDirectory(source: source, environment: environment, depth: depth + 1)
      }
      _ = state.directories.keep(directory, as: key, byteCount: HeldBytes.of(source))
      return .directory(directory)
    }
    let source = FileSource(path: path, url: url, fields: source.fields)
    let file: RemoteFile
    if let known = state.files[key], known.source == source {
      file = known
      file.keep()
    } else {
      let owners = environment.keyOwners
      file = owners.file(of: source, key: owners.key(for: source), in: environment.shared) {
        // The file that had this name before the list was reread.
        PathKey($0.source.path) == PathKey(path)
      }
    }
    if let old = state.files.keep(file, as: key, byteCount: HeldBytes.of(source)) {
      Self.letGo([old], in: environment)
    }
    file.note(facts(of: entry))
    return .file(file)
  }

  private func facts(of entry: ListingEntry) -> ListedFacts? {
    environment.settings.believesListings ? entry.facts : nil
  }

  /// The directory at a path below this one, if it has been created.
  package func existingDirectory(_ path: some Sequence<String>) -> ListedDirectory? {
    var directory = self
    for name in path {
      guard let next = directory.state.withLock({ $0.directories[PathKey(name)] }) else {
        return nil
      }
      directory = next
    }
    return directory
  }

  /// The files that have been looked up, or looked at ahead, and that the last listing names.
  ///
  /// They are those here and below, ordered by path.
  package var existingFiles: [RemoteFile] {
    let (files, directories) = state.withLock { ($0.listedFiles, $0.listedDirectories) }
    let children =
      files.map { ($0.key, [$0.item]) } + directories.map { ($0.key, $0.item.existingFiles) }
    return children.sorted { $0.0 < $1.0 }.flatMap(\.1)
  }

  // MARK: Status

  /// At most `limit` directories, here and below, whose last request for a listing has failed,
  /// ordered by path; uses memory only.
  package func failedListings(limit: Int) -> [FailedListing] {
    let (failure, hasNames, directories) = state.withLock {
      ($0.names.failure, $0.names.names != nil, $0.listedDirectories)
    }
    var failed: [FailedListing] = []
    if let failure {
      failed.append(
        FailedListing(
          directory: "\(source.path)/", url: source.url.redacted, reason: failure.advisedReason,
          showsEarlierNames: hasNames))
    }
    for (_, directory) in directories.sorted(by: { $0.key < $1.key }) where failed.count < limit {
      failed += directory.failedListings(limit: limit - failed.count)
    }
    return failed
  }

  // MARK: Probe

  private func send(_ id: ProbeID) {
    let (isAsking, tag) = state.withLock { ($0.names.isAsking(id), $0.names.entityTag) }
    guard isAsking else { return }
    var request = ExchangeRequest(
      url: source.url, confidentialFields: source.fields,
      connectTimeout: environment.settings.connectTimeout)
    if source.fields[.accept] == nil { request.fields[.accept] = "text/html" }
    request.fields[fields: .ifNoneMatch] = tag.map { [$0.field(.ifNoneMatch)] } ?? []
    request.staysInOrigin = true
    request.gate = environment.shared.outages
    request.stallTimeout = environment.settings.responseTimeout
    state.withLock { $0.names.begin(id, now: .now) }
    let exchange = environment.shared.client.start(
      request, receiver: ListingReceiver(id: id, directory: self))
    state.withLock { $0.names.started(id, as: exchange) }
  }

  /// Takes the complete body of an answer; parses it on another queue, because that takes a while.
  func received(_ id: ProbeID, _ body: ListingBody, _ answer: ListingAnswer) {
    environment.shared.silentServers.recordAnswer(of: source.url.origin)
    environment.shared.outages.recordContact(with: source.url.origin, isListed: true)
    environment.shared.context.listingQueue.async { [self] in
      guard state.withLock({ $0.names.isAsking(id) }) else { return }
      do throws(ListingError) {
        let names = try ListedNames(
          body.bytes, answer, of: source, depth: depth, hidden: environment.settings.hiddenNames)
        note(names.listing)
        conclude(state.withLock { $0.names.answered(id, names, now: .now) })
      } catch {
        failed(id, FileError(error), retryAfter: nil)
      }
    }
  }

  /// Takes an answer that confirms the known names.
  func unchanged(_ id: ProbeID) {
    environment.shared.silentServers.recordAnswer(of: source.url.origin)
    environment.shared.outages.recordContact(with: source.url.origin, isListed: true)
    conclude(state.withLock { $0.names.answered(id, nil, now: .now) })
  }

  /// Takes a failure of the exchange.
  func failed(_ id: ProbeID, _ error: ExchangeError) {
    OutageScout.send(after: error, from: source.url, context: environment.shared.context)
    failed(id, FileError(error), retryAfter: nil)
  }

  /// Takes a failure of the question; asks again if that may help and there is time.
  func failed(_ id: ProbeID, _ error: FileError, retryAfter: Duration?) {
    let policy = environment.shared.retryPolicy
    let isGone = environment.shared.outages.record(error, now: .now)
    let limit = isGone ? .zero : environment.settings.firstAnswerTimeout
    let delay = state.withLock {
      $0.names.delay(
        after: error, of: id, limit: limit, retryAfter: retryAfter, policy: policy,
        random: .random(in: 0..<1), now: .now)
    }
    guard let delay else {
      return conclude(state.withLock { $0.names.failed(id, error, now: .now) })
    }
    log(.notice, "asking for the listing again", error)
    environment.shared.client.schedule(after: delay) { [weak self] in self?.send(id) }
  }

  /// Handles a request that is held until `moment`, because the server has asked for a pause.
  func held(
    _ id: ProbeID, until moment: ContinuousClock.Instant, exchange: ExchangeID
  ) {
    guard state.withLock({ $0.names.ends(id, before: moment) }) else { return }
    let seconds = Int(((moment - .now) / .seconds(1)).rounded(.up))
    let error = FileError(.unavailable, "the server has asked for no request for \(seconds) s")
    environment.shared.client.cancel(exchange)
    conclude(state.withLock { $0.names.failed(id, error, now: .now) })
  }

  private func conclude(_ conclusion: ListingState.Conclusion?) {
    guard let conclusion else { return }
    if let exchange = conclusion.exchange { environment.shared.client.cancel(exchange) }
    if let error = conclusion.refreshFailure {
      log(environment.shared.failureLevel, "the listing may be out of date", error)
    } else if case .failure(let error) = conclusion.result {
      log(environment.shared.failureLevel, "no listing", error)
    }
    guard case .success = conclusion.result else {
      for waiter in conclusion.waiters { waiter(conclusion.result) }
      return
    }
    // Waiters for names go on to look into the cache: not on the network thread.
    environment.shared.context.listingQueue.async {
      for waiter in conclusion.waiters { waiter(conclusion.result) }
      // Also if the names are the same: a `forget()` during the question keeps them, uncounted.
      self.recordHeld()
    }
  }

  /// Fails all waiting questions and reads, here and below, because the mount ends.
  package func abandon() {
    let (id, files, directories) = state.withLock {
      ($0.names.probeID, $0.files.all.map(\.item), $0.directories.all.map(\.item))
    }
    if let id {
      let error = FileError(.unmounted, "the mount is being taken down")
      conclude(state.withLock { $0.names.failed(id, error, now: .now) })
    }
    for file in files { file.abandon() }
    for directory in directories { directory.abandon() }
  }

  // MARK: Log

  private func note(_ listing: DirectoryListing) {
    guard listing.unusableCount + listing.clashCount > 0 else { return }
    environment.logger.warning(
      "the listing holds names that the mount does not show",
      metadata: [
        "directory": "\(source.path)/", "url": "\(source.url.redacted)",
        "unusable": "\(listing.unusableCount)",
        "directories_named_as_files": "\(listing.clashCount)",
      ])
  }

  private func log(_ level: Logger.Level, _ message: Logger.Message, _ error: FileError) {
    environment.logger.log(
      level: level, message,
      metadata: [
        "directory": "\(source.path)/", "url": "\(source.url.redacted)",
        "reason": "\(error.reason)",
      ])
  }
}

extension ListedDirectory: NameHolder {
  var usedAt: ContinuousClock.Instant { state.withLock { $0.names.usedAt } }

  func forget() {
    let below = state.withLock { $0.directories.all }
    let wanted = Set(below.filter { $0.item.holdsWishes }.map(\.key))
    // The directories are released here, after the lock.
    let (files, directories) = state.withLock { state -> ([RemoteFile], [ListedDirectory]) in
      state.names.forget()
      return (
        state.files.forget { _, file in file.hasWishes },
        state.directories.forget { key, _ in wanted.contains(key) }
      )
    }
    Self.letGo(files, in: environment)
    _ = directories
  }

  /// Whether the user requested something for a file here or below.
  private var holdsWishes: Bool {
    let (files, directories) = state.withLock { ($0.files.all, $0.directories.all) }
    return files.contains { $0.item.hasWishes } || directories.contains { $0.item.holdsWishes }
  }
}

extension ListedDirectory: HasDeadline {
  func expire(now: ContinuousClock.Instant) -> Bool {
    if let id = state.withLock({ $0.names.expired(now: now) }) {
      environment.shared.silentServers.recordSilence(of: source.url.origin)
      let error = FileError(.timedOut, "no answer from the server")
      conclude(state.withLock { $0.names.failed(id, error, now: .now) })
    }
    return state.withLock { $0.names.probeID != nil }
  }

  func postpone(by delay: Duration) { state.withLock { $0.names.postpone(by: delay) } }
}
