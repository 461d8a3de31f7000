internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// Decides from the server's answers which version of the file is current.
struct VersionAdopter: Sendable {
  let file: any ProbedFile

  private var context: FileContext { file.context }
  private var environment: MountEnvironment { context.environment }
  private var state: GuardedKnowledge { file.state }
  private var mirrors: SharedMirrors? { context.mirrors }

  /// Adopts the description of the file by the server `mirror`.
  ///
  /// With `isConfirmation`, the server has confirmed that the file is unchanged.
  ///
  /// - Returns: the version that it described; the current one, if that still matches.
  func adopt(
    _ content: ContentVersion, from mirror: Int, isConfirmation: Bool = false
  ) -> RemoteVersion {
    // A first version may match a record that could not be read before; if the version has an
    // identity, the comparison is made when the entry is opened.
    let (isFirst, listedID) = state.withLock {
      ($0.current == nil, $0.listed?.takeID(ofLength: content.completeLength))
    }
    let isIdentified = content.strength != .unverifiable || content.completeLength != nil
    let candidate = RemoteVersion(
      of: file, content: content, id: listedID, mayHaveRecord: isFirst && isIdentified)
    let (version, replaced) = state.withLock { state -> (RemoteVersion, RemoteVersion?) in
      state.confirmedAt = .now
      state.isDoubted = false
      state.recentFailure = nil
      if let current = state.current {
        if isConfirmation && current.content == content
          || isSame(current, content, from: mirror) && current.canContinue(with: content)
        {
          return (current, nil)
        }
        state.current = candidate
        return (candidate, current)
      }
      state.setFirst(candidate)
      return (candidate, nil)
    }
    environment.silentServers.recordAnswer(of: context.source.url.origin)
    mirrors?.change {
      $0.answered(mirror)
      $0.readmit(mirror)
      if version === candidate {
        $0.defined(content, by: mirror)
      } else if isConfirmation {
        // This answer is about these validators.
        _ = $0.judge(content, from: mirror, pinned: content, now: .now)
      }
    }
    replaced?.supersede()
    if version === candidate {
      version.applyPolicy()
    } else {
      version.reinstate()
      version.learn(length: content.completeLength)
    }
    context.recordOffline(false)
    return version
  }

  /// Records the end of a response that described `version`: until then the server confirmed
  /// it.
  func responseEnded(of version: VersionID) {
    state.withLock { if $0.current?.id == version, !$0.isDoubted { $0.confirmedAt = .now } }
  }

  /// Records that the server has confirmed `version`.
  func confirm(_ version: RemoteVersion, by mirror: Int) {
    _ = adopt(version.content, from: mirror, isConfirmation: true)
  }

  /// Records a response that has shown another version than `version`.
  func versionContradicted(_ version: VersionID) {
    state.withLock { state in
      guard state.current?.id == version else { return }
      // Several requests with the same contradicting answer count as one.
      if !state.isDoubted { state.contradictions.note(now: .now) }
      state.isDoubted = true
      state.confirmedAt = nil
    }
    context.recordFailure(FileError.hasChanged, isRetried: false)
  }

  /// Whether the file that `index` describes now is `version`; notes what follows for the server.
  func isSame(_ version: RemoteVersion, _ content: ContentVersion, from index: Int) -> Bool {
    version.admits(content)
      && context.servers.isSame(content, from: index, as: version.pinned)
  }

  /// Why the answer `content` of the server `index` cannot be about the wanted file; nil if it can.
  ///
  /// Cached bytes of a version are not dropped for another server's file while the server that has
  /// the version may come back.
  func objection(to content: ContentVersion, from index: Int) -> String? {
    guard let mirrors else { return nil }
    if let reason = mirrors.details.contradiction(ofLength: content.completeLength) {
      return reason
    }
    guard let current = state.withLock({ $0.current }), current.hasCachedBytes,
      !isSame(current, content, from: index),
      mirrors.change({ $0.hasUnavailable(besides: index, now: .now) })
    else { return nil }
    return "nothing shows that its file is the one that is partly cached"
  }
}
