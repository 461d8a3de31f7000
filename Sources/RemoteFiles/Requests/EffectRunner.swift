internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// Carries out a decision about a version after its lock is released: answers reads, sends and
/// cancels requests.
struct EffectRunner: Sendable {
  let owner: RemoteVersion

  private var reads: VersionReads { VersionReads(owner: owner) }
  private var ends: RequestEnds { RequestEnds(owner: owner) }

  func perform(_ effects: VersionEffects) {
    if !effects.woken.isEmpty {
      let woken = effects.woken
      let byteCount = woken.reduce(Int64(0)) { $0 + $1.byteCount }
      let needsDisk = woken.contains { $0.located.entry != nil }
      owner.environment.reply(byteCount: byteCount, needsDisk: needsDisk) { [self] in
        for read in woken { answer(read) }
      }
    }
    if !effects.unready.isEmpty {
      let unready = effects.unready
      // Their bytes must be verified first, or the cache has just failed.
      owner.environment.reply(byteCount: .max, needsDisk: true) { [self] in
        for read in unready { reads.wait(for: read) }
      }
    }
    for (reply, error) in effects.failed { reply.fail(error) }
    let actions = effects.actions
    for wait in actions.lengthAnswers { wait.answer() }
    for flush in effects.flushes { owner.environment.client.perform(flush) }
    for (index, _) in actions.silentMirrors { owner.file.servers.recordSilence(ofMirror: index) }
    if let mirrors = owner.file.mirrors {
      // Before the requests are cancelled and their ranges requested again.
      for (index, error) in actions.silentMirrors { mirrors.failed(index, error) }
    }
    for exchange in actions.cancels { owner.environment.client.cancel(exchange) }
    for exchange in actions.raises { owner.environment.client.prioritize(exchange) }
    for exchange in actions.resumes { owner.environment.client.unpause(exchange) }
    if !actions.starts.isEmpty {
      let hedgeCount = actions.starts.count { $0.hedgeOf != nil }
      owner.environment.hedges.withLock {
        $0.recordRequests(actions.starts.count, hedges: hedgeCount)
      }
    }
    for var segment in actions.starts {
      if let mirrors = owner.file.mirrors, !assignMirror(to: &segment, of: mirrors) { continue }
      guard let url = owner.home.place(atMirror: segment.mirror) else {
        endMirror(of: segment)
        ends.awaitLocation(segment.id)
        continue
      }
      var request = owner.file.request(
        range: segment.isWhole ? nil : segment.start..<segment.end, at: url,
        mirror: segment.mirror)
      request.priority = segment.isWaitedFor ? .demand : .readAhead
      let receiver = SegmentReceiver(version: owner, segment: segment, asked: url)
      let exchange = owner.environment.client.start(request, receiver: receiver)
      owner.note(.sentAs(exchange), of: segment.id)
    }
    if !actions.checks.isEmpty { PieceHasher(owner: owner).hash(actions.checks) }
    if let delay = actions.retryAfter {
      owner.environment.client.schedule(after: delay) { [weak owner] in
        owner?.change { $0.plan(now: .now, into: &$1) }
      }
    }
    if actions.recordsLength {
      // Not here: the disk may hang.
      owner.environment.storage.perform { [self] in EntryLoader(owner: owner).recordLength() }
    }
    if actions.looksAgain { VersionHandles(owner: owner).lookAgain() }
    if actions.needsWatch || !actions.starts.isEmpty {
      owner.environment.clock.watch(owner, checkpoints: VersionCheckpoints(owner: owner))
    }
  }

  /// Frees the place of a request that is not sent.
  private func endMirror(of segment: Segment) {
    owner.file.mirrors?.change { [index = segment.mirror] in
      $0.ended(index, bytesPerSecond: nil)
    }
  }

  /// Answers a waiting read, or lets it wait on if its bytes have been lost.
  func answer(_ woken: WokenRead) {
    // The lease ends with `bytes`, even if the read fails.
    let bytes = PresentBytes(of: owner, woken.located)
    guard reads.isIntact(woken.located) else {
      return reads.wait(for: woken.read)
    }
    woken.read.reply.succeed(bytes)
  }

  /// Chooses the server that gets the request of `segment`.
  ///
  /// - Returns: whether there is one; if not, the segment has failed.
  private func assignMirror(to segment: inout Segment, of mirrors: SharedMirrors) -> Bool {
    let (id, isUrgent) = (segment.id, segment.isWaitedFor)
    let excluded = segment.suspect?.excludedMirrors ?? []
    let silent = segment.hedgeOf.flatMap { id in
      owner.state.withLock { $0.version.mirror(of: id) }
    }
    let chosen = mirrors.change { set -> Int? in
      let index =
        set.choose(isUrgent: isUrgent, except: excluded, avoiding: silent, now: .now)
        ?? set.choose(isUrgent: isUrgent, now: .now)
      if let index { set.began(index) }
      return index
    }
    guard let chosen else {
      ends.failed(id, FileError(.refused, "every server of the file has other bytes"))
      return false
    }
    segment.mirror = chosen
    owner.note(.sentTo(mirror: chosen), of: id)
    return true
  }
}
