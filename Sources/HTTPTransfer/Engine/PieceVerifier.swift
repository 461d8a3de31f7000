internal import HTTPTransferCore
internal import HTTPTypes

/// Compares the pieces of one transfer with what they must hash to as soon as they are there; those
/// that are wrong become absent.
///
/// `@unchecked Sendable`: used on the network thread only.
final class PieceVerifier: @unchecked Sendable {
  /// Owns this; whatever runs later holds it.
  private unowned let driver: TransferDriver
  /// What the pieces must hash to; nil if the file is not compared by pieces.
  private let hashes: PieceHashes?
  /// What has arrived of pieces that are not verified; nil before the length is known.
  private var pieces: PieceTable?
  /// The bytes of the pieces that are verified.
  private var verified = ExtentSet()
  /// The pieces that are there and are to be hashed.
  private var pending: [PieceTable.Check] = []
  /// Counts the new beginnings, which make what is under way on other threads void.
  private(set) var generation = 0
  /// Whether a thread hashes pieces.
  private var isVerifying = false
  /// How a piece was wrong that is absent again since; nil where no request has been planned for it yet.
  private(set) var refutation: TransferError?

  /// How many pieces are hashed before the results are looked at.
  private static let batchCount = 16

  init(driver: TransferDriver, hashes: PieceHashes?) {
    self.driver = driver
    self.hashes = hashes
  }

  /// What the pieces must hash to, where the whole file is fetched as it is, to where it can be read
  /// again.
  static func hashes(of request: Request, into store: BodyStore) -> PieceHashes? {
    guard request.method == .get, request.range == nil, !request.decodesContent, store.canDigest
    else { return nil }
    return request.pieces
  }

  /// Whether pieces are compared.
  var isActive: Bool { pieces != nil }

  // MARK: What has arrived

  /// Begins to keep account of pieces once the length is known.
  func begin(_ table: SegmentTable) {
    guard pieces == nil, let hashes, table.isLengthKnown else { return }
    pieces = PieceTable(hashes: hashes, length: table.target.upperBound)
    for extent in table.extents.extents { noteArrival(of: extent, from: PieceTable.unknownServer) }
  }

  /// Bytes have been stored, brought by the server `mirror`.
  func noteArrival(of range: ByteRange, from mirror: Int) {
    pending += pieces?.note(range, from: mirror, extents: verified).checks ?? []
  }

  /// Everything begins anew.
  func forget() {
    pieces = nil
    verified = ExtentSet()
    pending = []
    refutation = nil
    generation += 1
  }

  /// Looks whether every piece is verified; else `driver` goes on after their verification, or fails.
  func isDone(_ table: SegmentTable) -> Bool {
    guard let hashes else { return true }
    begin(table)
    guard let pieces else {
      let count = hashes.digests.count
      driver.fail(
        TransferError(
          .checksumMismatch, driver.request.url,
          "the file has \(table.target.upperBound) bytes, which are not \(count) pieces"))
      return false
    }
    if verified.contains(0..<pieces.length) { return true }
    driver.awaitVerification()
    verify()
    return false
  }

  /// Whether every piece is verified.
  var areAllVerified: Bool { pieces.map { verified.contains(0..<$0.length) } ?? false }

  // MARK: Hashing

  /// Hashes the pieces that are there, on a thread of its own: it reads the disk, and takes its time.
  func verify() {
    guard !isVerifying, !pending.isEmpty, let pieces else { return }
    let batch = pending.prefix(Self.batchCount)
    pending.removeFirst(batch.count)
    isVerifying = true
    let (generation, algorithm) = (generation, pieces.hashes.algorithm)
    driver.store.run { sink in
      batch.compactMap { check in
        sink.digester(of: check.range, algorithm: algorithm).map { (check: check, digest: $0) }
      }
    } then: { [driver] jobs in
      driver.pieces.hash((try? jobs.get()) ?? [], count: batch.count, generation: generation)
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
      return driver.fail(
        TransferError(
          .destination, driver.request.url, "the pieces cannot be read again to be compared"))
    }
    let work: @Sendable () -> Void = { [driver] in
      let results = jobs.map { job -> PieceResult in
        do throws(FileFailure) {
          return PieceResult(check: job.check, digest: .success(try job.digest()))
        } catch {
          return PieceResult(check: job.check, digest: .failure(error))
        }
      }
      driver.client.perform { driver.pieces.took(results, generation: generation) }
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
    guard [.running, .paused, .verifying].contains(driver.phase) else { return }
    // Of what has been thrown away meanwhile they say nothing.
    guard generation == self.generation else { return verify() }
    for result in results {
      switch result.digest {
      case .failure(let failure): return driver.fail(failure)
      case .success(let found):
        guard take(found, of: result.check) else { return }
      }
    }
    verify()
    driver.goOnAfterVerification()
  }

  /// Compares a piece.
  ///
  /// - Returns: whether the transfer goes on.
  private func take(_ found: Checksum, of check: PieceTable.Check) -> Bool {
    guard let hashes = pieces?.hashes else { return true }
    let fetcher = driver.fetcher
    let wanted = Checksum(algorithm: found.algorithm, digest: hashes.digests[check.piece])
    let (matches, trusted) = (found == wanted, fetcher.mirrors.trusted)
    let liar = pieces?.liar(of: check, matches: matches, trusted: trusted)
    guard let outcome = pieces?.settle(check, matches: matches, trusted: trusted),
      outcome != .outdated
    else { return true }
    if matches {
      verified.insert(check.range)
    } else {
      fetcher.forget(check.range)
    }
    if let liar {
      fetcher.excludeLiar(liar, "it has served bytes that do not hash to what they should")
    }
    if matches { return true }
    let (first, last) = (check.range.lowerBound, check.range.upperBound - 1)
    let error = TransferError(
      .checksumMismatch, driver.request.url,
      "bytes \(first)-\(last) hash to \(found), not to \(wanted)")
    if outcome == .lost {
      driver.fail(error.naming(fetcher.mirrors.refusals(besides: nil)))
      return false
    }
    refutation = error
    let failureCount = pieces?.failureCount(ofPiece: check.piece) ?? 1
    driver.monitor.emit(.retrying(error, attempt: failureCount, after: .zero))
    return true
  }

  // MARK: Wrong pieces

  /// What turned out wrong is asked for now.
  func takeRefutation() -> TransferError? {
    defer { refutation = nil }
    return refutation
  }

  /// A piece that was wrong, whose bytes one mirror alone is to bring.
  struct Suspect {
    let piece: Int
    let range: ByteRange
    /// The mirrors that are not asked for it, if there are others.
    let excluded: Set<Int>
  }

  /// The wrong pieces that are to be asked for.
  var suspects: [Suspect] {
    guard let pieces else { return [] }
    return pieces.suspects.filter { !pieces.isChecking(piece: $0) }.map {
      Suspect(
        piece: $0, range: pieces.hashes.range(ofPiece: $0, length: pieces.length),
        excluded: pieces.excluded(fromPiece: $0))
    }
  }

  func isSuspect(_ piece: Int) -> Bool { pieces?.suspects.contains(piece) == true }

  /// The pieces that ordinary requests leave out.
  var suspectRanges: [ByteRange] {
    guard let pieces else { return [] }
    return pieces.suspects.map { pieces.hashes.range(ofPiece: $0, length: pieces.length) }
  }

  /// Forgets what others have brought of a suspect piece, so that it comes from one mirror.
  ///
  /// - Returns: the bytes that are to be forgotten, too; nil if the piece is not known.
  func restart(_ piece: Int) -> ByteRange? { pieces?.restart(piece: piece) }
}
