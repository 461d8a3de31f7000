internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import MountStatus

/// The file of a version, as the version and the parts that work on it know it.
protocol VersionOwner: EntryOwner, FileReports, ServerAddresses, AnswerJudge {
  var environment: MountEnvironment { get }
  var source: FileSource { get }
  var cacheKey: CacheKey { get }
  /// The servers of the file; nil where the list says no more of it than a URL.
  var mirrors: MirrorBoard? { get }
  /// What the user wants of the file now; may be asked for under a version's lock.
  var currentWishes: FileWishes { get }

  /// Does `work`, which opens, creates or removes the cache entry, while nobody else does so.
  func whileLoading<Failure: Error>(_ work: () throws(Failure) -> Void) throws(Failure)

  /// Carries out what `version` has decided; called without its lock.
  func perform(_ effects: VersionEffects, of version: RemoteVersion)

  /// Has the server asked whether `version` is still current, unless that is known.
  func open(
    _ version: RemoteVersion, by deadline: ContinuousClock.Instant?,
    _ answer: @escaping @Sendable (FileError?) -> Void)

  /// A response that described `version` has come to its end.
  func responseEnded(of version: RemoteVersion)

  /// A response has shown another version than `version`.
  func versionContradicted(_ version: RemoteVersion)

  /// The file's line in `.status`.
  func status(passthrough: Set<VersionID>, isNamed: Bool) -> FileStatus
}

/// Counts and logs what happens to a file.
protocol FileReports {
  func noteFailure(_ error: FileError, isRetried: Bool)
  /// Cached bytes have been found damaged.
  func noteDamage(_ byteCount: Int64)
  func noteFetched(_ byteCount: Int)
  func noteRequests(_ metrics: ExchangeMetrics)
}

/// Knows where the bytes of a file are asked for.
protocol ServerAddresses {
  /// The origins of its servers, as listed.
  var origins: [String] { get }
  /// The URL of the server `mirror` as listed.
  func url(ofMirror mirror: Int) -> RemoteURL
  /// Where bytes are asked for now; nil where nobody knows before ``renewLocation(_:)`` ends.
  func place(atMirror mirror: Int) -> RemoteURL?
  /// A request for `range`, or for the whole, at `url`, which leads to the server `mirror`.
  func request(range: ByteRange?, at url: RemoteURL, mirror: Int) -> ExchangeRequest
  /// Finds out where the bytes are now; `done` gets the failure, if there is one.
  func renewLocation(_ done: @escaping @Sendable (FileError?) -> Void)
}

/// Decides what the answer of a server means for the file and for that server.
protocol AnswerJudge {
  /// A request that was sent to `asked` was answered from `url`, with what it asked for.
  func noteAnswer(from url: RemoteURL, asked: RemoteURL, mirror: Int)
  /// A request for bytes that was sent to `asked` was refused.
  func noteRefusal(of asked: RemoteURL) -> ResourceLocation.Refusal
  /// What a refusal for good by the server `mirror` means.
  func refusal(_ verdict: ResponseVerdict, mirror: Int) -> FileError
  /// Whether another server than `mirror` can say what the file is.
  func isOneOfSeveral(_ mirror: Int) -> Bool
  /// The server `mirror` has other bytes than those that are wanted: it is not asked again.
  func refuseMirror(_ mirror: Int, _ reason: String)
}
