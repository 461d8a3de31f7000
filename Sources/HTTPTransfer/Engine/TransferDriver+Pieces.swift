internal import HTTPTransferCore
internal import HTTPTypes

/// Pieces that must hash to what the request says: compared as soon as they are there, fetched again where
/// they do not.
extension TransferDriver {
  /// What the pieces must hash to, where the whole file is fetched as it is, to where it can be read again.
  static func wantedPieces(of request: Request, into store: BodyStore) -> PieceHashes? {
    guard request.method == .get, request.range == nil, !request.decodesContent, store.canDigest
    else { return nil }
    return request.pieces
  }

  var wantedPieces: PieceHashes? { Self.wantedPieces(of: request, into: store) }

  /// Begins to keep account of pieces once the length is known.
  func beginPieces() {
    guard pieces == nil, let wantedPieces, table.isLengthKnown else { return }
    pieces = PieceTable(hashes: wantedPieces, length: table.target.upperBound)
    for extent in table.extents.extents { noteArrival(of: extent, from: PieceTable.unknownServer) }
  }

  /// Bytes have been stored, brought by the server `mirror`.
  func noteArrival(of range: ByteRange, from mirror: Int) {
    pendingChecks += pieces?.note(range, from: mirror, extents: verified).checks ?? []
  }

  /// Whether every piece is verified; else their verification has been begun, and goes on with what
  /// follows.
  func arePiecesVerified() -> Bool {
    guard let wantedPieces else { return true }
    beginPieces()
    guard let pieces else {
      let count = wantedPieces.digests.count
      fail(
        TransferError(
          .checksumMismatch, request.url,
          "the file has \(table.target.upperBound) bytes, which are not \(count) pieces"))
      return false
    }
    if verified.contains(0..<pieces.length) { return true }
    phase = .verifying
    monitor.update {
      $0.state = .finishing
      $0.connections = 0
    }
    verifyPieces()
    return false
  }

  /// How many pieces are hashed before the results are looked at.
  private static let batchCount = 16

  /// Hashes the pieces that are there, on a thread of its own: it reads the disk, and takes its time.
  func verifyPieces() {
    guard !isVerifying, !pendingChecks.isEmpty, let pieces else { return }
    let batch = pendingChecks.prefix(Self.batchCount)
    pendingChecks.removeFirst(batch.count)
    isVerifying = true
    let generation = generation
    let algorithm = pieces.hashes.algorithm
    store.run { sink in
      batch.compactMap { check in
        sink.digester(of: check.range, algorithm: algorithm).map { (check: check, digest: $0) }
      }
    } then: { [self] jobs in
      hash((try? jobs.get()) ?? [], count: batch.count, generation: generation)
    }
  }

  /// Runs digesters on a thread of their own.
  ///
  /// - Parameters:
  ///   - jobs: the pieces with their digesters.
  ///   - count: how many there must be.
  ///   - generation: of which beginning they are.
  private func hash(
    _ jobs: [(check: PieceTable.Check, digest: @Sendable () throws(FileFailure) -> Checksum)],
    count: Int, generation: Int
  ) {
    // Of what has been thrown away meanwhile there may be none.
    guard jobs.count == count || generation != self.generation else {
      isVerifying = false
      // The destination is as good as gone; to wait for it would be to wait for ever.
      return fail(
        TransferError(.destination, request.url, "the pieces cannot be read again to be compared"))
    }
    let work: @Sendable () -> Void = { [self] in
      let results = jobs.map { job -> PieceResult in
        do throws(FileFailure) {
          return PieceResult(check: job.check, digest: .success(try job.digest()))
        } catch {
          return PieceResult(check: job.check, digest: .failure(error))
        }
      }
      client.perform { [self] in took(results, generation: generation) }
    }
    // Without a thread to spare the network thread waits: slow, and right.
    if !spawnThread(name: "httpfs-verify", work) { work() }
  }

  private struct PieceResult: Sendable {
    let check: PieceTable.Check
    let digest: Result<Checksum, FileFailure>
  }

  private func took(_ results: [PieceResult], generation: Int) {
    isVerifying = false
    guard phase == .running || phase == .paused || phase == .verifying else { return }
    // Of what has been thrown away meanwhile they say nothing.
    guard generation == self.generation else { return verifyPieces() }
    for result in results {
      switch result.digest {
      case .failure(let failure): return fail(transferError(failure))
      case .success(let found):
        guard take(found, of: result.check) else { return }
      }
    }
    verifyPieces()
    goOnAfterVerification()
  }

  /// Compares a piece.
  ///
  /// - Returns: whether the transfer goes on.
  private func take(_ found: Checksum, of check: PieceTable.Check) -> Bool {
    guard let hashes = pieces?.hashes else { return true }
    let wanted = Checksum(algorithm: found.algorithm, digest: hashes.digests[check.piece])
    let (matches, trusted) = (found == wanted, mirrors.trusted)
    let liar = pieces?.liar(of: check, matches: matches, trusted: trusted)
    guard let outcome = pieces?.settle(check, matches: matches, trusted: trusted),
      outcome != .outdated
    else { return true }
    if matches {
      verified.insert(check.range)
    } else {
      forgetBytes(check.range)
    }
    if let liar { excludeLiar(liar, "it has served bytes that do not hash to what they should") }
    if matches { return true }
    let (first, last) = (check.range.lowerBound, check.range.upperBound - 1)
    let error = TransferError(
      .checksumMismatch, request.url, "bytes \(first)-\(last) hash to \(found), not to \(wanted)")
    if outcome == .lost {
      fail(naming(error, besides: nil))
      return false
    }
    refutation = error
    let failureCount = pieces?.failureCount(ofPiece: check.piece) ?? 1
    monitor.emit(.retrying(error, attempt: failureCount, after: .zero))
    return true
  }

  private func forgetBytes(_ range: ByteRange) {
    let removed = table.forget(range)
    if removed != 0 { monitor.emit(.received(byteCount: -removed)) }
  }

  /// Asks for each piece that was wrong by a request of its own, to one mirror.
  ///
  /// That shows who has served the wrong bytes, and the other requests continue meanwhile.
  func sendSuspects() {
    guard let suspects = pieces?.suspects, let table = pieces else { return }
    for piece in suspects where !table.isChecking(piece: piece) {
      let range = table.hashes.range(ofPiece: piece, length: table.length)
      guard
        let segment = self.table.add(
          piece: piece, range, except: table.excluded(fromPiece: piece))
      else { continue }
      _ = restart(segment, ofPiece: piece)
      send(segment)
    }
  }

  /// Forgets what others have brought of a suspect piece, so that it comes from one mirror.
  ///
  /// - Returns: the bytes of the piece.
  func restart(_ segment: SegmentTable.Segment, ofPiece piece: Int) -> ByteRange {
    guard let range = pieces?.restart(piece: piece) else { return segment.start..<segment.end }
    forgetBytes(range)
    return range
  }

  /// The pieces that ordinary requests leave out.
  var suspectRanges: [ByteRange] {
    guard let pieces else { return [] }
    return pieces.suspects.map { pieces.hashes.range(ofPiece: $0, length: pieces.length) }
  }

  private func goOnAfterVerification() {
    if phase == .verifying {
      guard let pieces else { return }
      if verified.contains(0..<pieces.length) {
        phase = .running
        return finish()
      }
      guard !table.isComplete else { return }
      phase = .running
      monitor.update { $0.state = .running }
    }
    guard phase == .running, !table.isComplete else { return }
    plan()
    if exchanges.isEmpty, table.segments.isEmpty { fetchRefutedPieces() }
  }

  /// Asks for what has turned out wrong, where nothing is under way: by ranges where the server has them.
  func fetchRefutedPieces() {
    guard let error = refutation else { return launch() }
    refutation = nil
    if canSkip, !haveRangesBeenRefused { isSequential = false }
    if isSequential {
      // All of it has to come again, which forgets how often the piece was wrong.
      refetchCount += 1
      guard refetchCount <= PieceTable.attemptLimit * mirrors.count else { return fail(error) }
    }
    launch()
  }
}
