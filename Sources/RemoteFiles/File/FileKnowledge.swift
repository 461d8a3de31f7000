internal import DirectoryListing

/// Which version of a file is current, what is known of it, and the question to its server.
struct FileKnowledge: Sendable {
  /// The version that a new `open` gets.
  var current: RemoteVersion? {
    get { kept ?? known }
    set {
      kept = keepsVersion ? newValue : nil
      known = newValue
    }
  }
  /// The current version, unless the file has let it go: a version holds its file, so that
  /// neither would ever end.
  private var kept: RemoteVersion?
  /// The current version for as long as somebody has it.
  private weak var known: RemoteVersion?
  private var keepsVersion = true
  /// What a listing says, while there is no version.
  var listed: Listed?
  /// When the server last confirmed the current version.
  var confirmedAt: ContinuousClock.Instant?
  /// Whether a response has contradicted the current version.
  var isDoubted = false
  var contradictions = ContradictionCount()
  /// Whether the user wants the server to be asked whatever is known.
  var mustAsk = false
  /// The question to the server.
  var probe = FileProbe()
  var recentFailure: (error: FileError, until: ContinuousClock.Instant)?
  var look = Look.none
  /// Whether somebody has asked for it, so that it is more than a name that was looked at ahead.
  var wasAskedFor = false

  mutating func setFirst(_ version: RemoteVersion) {
    current = version
    // Its number is taken.
    listed = nil
  }

  /// Keeps the current version no longer.
  ///
  /// - Returns: the version, to be released without the lock.
  mutating func letGo() -> RemoteVersion? {
    // When this version is gone the cache is looked into, which may have an older one.
    confirmedAt = nil
    if case .done = look { look = .none }
    keepsVersion = false
    return kept.take()
  }

  /// Ends the look that is under way.
  ///
  /// - Returns: what waits for it, to be run without the lock.
  mutating func endLook(_ outcome: Look) -> [@Sendable () -> Void] {
    let before = look
    switch outcome {
    // The version that was found is gone soon: the next look finds it again.
    case .done where !keepsVersion: look = .none
    case .none, .underWay, .done, .late: look = outcome
    }
    if case .underWay(let waiters) = before { return waiters }
    // The look ended at the same moment as its time.
    if case .late = outcome { look = before }
    return []
  }

  /// Takes ``letGo()`` back.
  mutating func keep() {
    keepsVersion = true
    kept = known
  }

  /// Whether there are cached bytes that no response has contradicted.
  var hasBelievedBytes: Bool { current?.hasCachedBytes == true && !isDoubted }

  /// Ends the question `id`, and takes note of what its result means for later callers.
  mutating func endProbe(
    _ id: ProbeID, _ result: Result<RemoteVersion, FileError>, now: ContinuousClock.Instant
  ) -> Probe<RemoteVersion>.End? {
    guard let end = probe.end(id) else { return nil }
    switch result {
    case .success(let version): if current === version { confirmedAt = now }
    case .failure(let error): recentFailure = (error, now + FileSettings.failureMemory)
    }
    return end
  }

  /// The first look into the cache, which may wait for the disk.
  enum Look {
    case none
    /// A look is under way; these callbacks run when it ends or takes too long.
    case underWay([@Sendable () -> Void])
    /// The look took too long, and nobody waits for it any more.
    case late
    case done
  }

  /// What a listing says of a file.
  struct Listed {
    let facts: ListedFacts
    /// The number under which it was shown; nil while it was not.
    var id: VersionID?

    /// The number for a version of that length, where it was shown already; handed out once, though two
    /// may come to describe the file.
    ///
    /// A number that is then not used costs its opener a second look-up.
    mutating func takeID(ofLength length: Int64?) -> VersionID? {
      length == facts.byteCount ? id.take() : nil
    }
  }
}
