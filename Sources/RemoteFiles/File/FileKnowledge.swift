internal import DirectoryListing

/// The current version of a file, what is known about it, and the question to its server.
struct FileKnowledge: Sendable {
  /// The version that a new `open` gets.
  var current: RemoteVersion? {
    get { kept ?? known }
    set {
      kept = keepsVersion ? newValue : nil
      known = newValue
    }
  }
  /// The current version, unless the file has let it go: a version holds its file, so the two would
  /// keep each other alive.
  private var kept: RemoteVersion?
  /// The current version for as long as something else holds it.
  private weak var known: RemoteVersion?
  private var keepsVersion = true
  /// What a listing says about the file while there is no version.
  var listed: Listed?
  /// When the server last confirmed the current version.
  var confirmedAt: ContinuousClock.Instant?
  /// Whether a response has contradicted the current version.
  var isDoubted = false
  var contradictions = ContradictionCount()
  /// Whether the user wants the server to be asked, whatever is known.
  var mustAsk = false
  /// The question to the server.
  var probe = FileProbe()
  var recentFailure: (error: FileError, until: ContinuousClock.Instant)?
  var look = Look.none
  /// Whether a program has asked for the file, so that it is more than a name that was looked at
  /// ahead.
  var wasAskedFor = false

  mutating func setFirst(_ version: RemoteVersion) {
    current = version
    // The version has taken its number.
    listed = nil
  }

  /// Releases the current version.
  ///
  /// - Returns: the version, to be released without the lock.
  mutating func letGo() -> RemoteVersion? {
    // After the version is gone, the cache is looked into again; it may have an older one.
    confirmedAt = nil
    if case .done = look { look = .none }
    keepsVersion = false
    return kept.take()
  }

  /// Ends the look that is under way.
  ///
  /// - Returns: the callbacks that wait for it, to be run without the lock.
  mutating func endLook(_ outcome: Look) -> [@Sendable () -> Void] {
    let before = look
    switch outcome {
    // The version that was found will be gone soon; the next look finds it again.
    case .done where !keepsVersion: look = .none
    case .none, .underWay, .done, .late: look = outcome
    }
    if case .underWay(let waiters) = before { return waiters }
    // The look ended at the same moment as its time.
    if case .late = outcome { look = before }
    return []
  }

  /// Reverts ``letGo()``.
  mutating func keep() {
    keepsVersion = true
    kept = known
  }

  /// Whether there are cached bytes that no response has contradicted.
  var hasBelievedBytes: Bool { current?.hasCachedBytes == true && !isDoubted }

  /// Ends the question `id`, and notes what its result means for later callers.
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
    /// The look took too long, and no caller waits for it any more.
    case late
    case done
  }

  /// What a listing says about a file.
  struct Listed {
    let facts: ListedFacts
    /// The number under which it was shown; nil if it was not.
    var id: VersionID?

    /// Takes the number for a version of that length, if it was shown already.
    ///
    /// The number is handed out once, even if two responses describe the file. If it is then not
    /// used, the opener needs a second lookup.
    mutating func takeID(ofLength length: Int64?) -> VersionID? {
      length == facts.byteCount ? id.take() : nil
    }
  }
}
