internal import HTTPTransferCore
internal import HTTPTypes

/// Pieces that must hash to what the request says: compared as soon as they are there, fetched again where
/// they do not.
extension TransferDriver {
  /// What the pieces must hash to, where the whole file is fetched as it is, to where it can be read again.
  var wantedPieces: PieceHashes? {
    guard request.method == .get, request.range == nil, !request.decodesContent, sink.canDigest
    else { return nil }
    return request.pieces
  }

  /// Begins to keep the ledger once the length is known.
  func beginLedger() {
    guard ledger == nil, let wantedPieces, table.isLengthKnown else { return }
    ledger = PieceLedger(hashes: wantedPieces, length: table.target.upperBound)
    for extent in table.extents.extents {
      pendingPieces +=
        ledger?.stored(extent, by: PieceLedger.earlierRun, extents: table.extents) ?? []
    }
  }

  /// Whether every piece is verified; else their verification has been begun, and goes on with what
  /// follows.
  func arePiecesVerified() -> Bool {
    guard let wantedPieces else { return true }
    beginLedger()
    guard let ledger else {
      let count = wantedPieces.digests.count
      fail(
        TransferError(
          .checksumMismatch, request.url,
          "the file has \(table.target.upperBound) bytes, which are not \(count) pieces"))
      return false
    }
    if ledger.isComplete { return true }
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
    guard !isVerifying, !pendingPieces.isEmpty, let ledger else { return }
    let batch = pendingPieces.prefix(Self.batchCount)
    pendingPieces.removeFirst(batch.count)
    let jobs = batch.compactMap { piece in
      sink.digester(of: ledger.range(of: piece), algorithm: ledger.hashes.algorithm)
        .map { (piece: piece, digest: $0) }
    }
    guard jobs.count == batch.count else {
      // The destination is as good as gone; to wait for it would be to wait for ever.
      return fail(
        TransferError(.destination, request.url, "the pieces cannot be read again to be compared"))
    }
    isVerifying = true
    let generation = pieceGeneration
    let work: @Sendable () -> Void = { [self] in
      let results = jobs.map { job -> PieceResult in
        do throws(FileFailure) {
          return PieceResult(piece: job.piece, digest: .success(try job.digest()))
        } catch {
          return PieceResult(piece: job.piece, digest: .failure(error))
        }
      }
      client.perform { [self] in took(results, generation: generation) }
    }
    // Without a thread to spare the network thread waits: slow, and right.
    if !spawnThread(name: "httpfs-verify", work) { work() }
  }

  private struct PieceResult: Sendable {
    let piece: Int
    let digest: Result<Checksum, FileFailure>
  }

  private func took(_ results: [PieceResult], generation: Int) {
    isVerifying = false
    guard phase == .running || phase == .paused || phase == .verifying else { return }
    // Of what has been thrown away meanwhile they say nothing.
    guard generation == pieceGeneration else { return verifyPieces() }
    for result in results {
      switch result.digest {
      case .failure(let failure): return fail(transferError(failure))
      case .success(let found):
        guard take(found, ofPiece: result.piece) else { return }
      }
    }
    verifyPieces()
    goOnAfterVerification()
  }

  /// Compares a piece.
  ///
  /// - Returns: whether the transfer goes on.
  private func take(_ found: Checksum, ofPiece piece: Int) -> Bool {
    guard let ledger else { return true }
    let wanted = Checksum(algorithm: found.algorithm, digest: ledger.hashes.digests[piece])
    guard found != wanted else {
      if let liar = self.ledger?.verified(piece) {
        mirrors.focus = nil
        if liar >= 0 {
          excludeLiar(liar, "it has served bytes that do not hash to what they should")
        }
      }
      return true
    }
    let range = ledger.range(of: piece)
    let reason =
      "bytes \(range.lowerBound)-\(range.upperBound - 1) hash to \(found), not to \(wanted)"
    let bringers = self.ledger?.refuted(piece) ?? []
    let removed = table.forget(range)
    if removed != 0 { monitor.emit(.received(byteCount: -removed)) }
    hasRefutedPiece = true
    let error = TransferError(.checksumMismatch, request.url, reason)
    if bringers.count == 1, let liar = bringers.first, liar >= 0 {
      guard mirrors.count == 1 || mirrors.hasAnother(than: liar) else {
        fail(naming(error, besides: liar))
        return false
      }
      excludeLiar(liar, "it has served bytes that do not hash to what they should")
    } else {
      // Fetched from one mirror alone, the piece shows who has served the wrong bytes.
      mirrors.focus = mirrors.count > 1 ? nextMirror() : nil
    }
    let failureCount = pieceFailureCounts[piece, default: 0] + 1
    pieceFailureCounts[piece] = failureCount
    // Each mirror may be wrong once, and the bytes of an earlier run.
    guard failureCount <= mirrors.count + (bringers.contains(PieceLedger.earlierRun) ? 1 : 0) else {
      fail(naming(error, besides: -1))
      return false
    }
    monitor.emit(.retrying(error, attempt: failureCount, after: .zero))
    return true
  }

  private func goOnAfterVerification() {
    if phase == .verifying {
      guard let ledger else { return }
      if ledger.isComplete {
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
    hasRefutedPiece = false
    if canSkip, !haveRangesBeenRefused { isSequential = false }
    launch()
  }
}
