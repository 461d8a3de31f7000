internal import HTTPTransferCore
internal import HTTPTypes

/// Compares the pieces of one transfer with their expected hashes as soon as they are present.
///
/// `@unchecked Sendable`: used on the network thread only.
final class PieceVerifier: @unchecked Sendable {
  /// The expected hashes; nil if the file is not compared by pieces.
  let hashes: PieceHashes?
  private let url: RemoteURL
  private let store: BodyStore
  private let client: ExchangeClient
  /// The bytes that arrived of unverified pieces; nil before the length is known.
  private var pieces: PieceTable?
  /// The bytes of the pieces that are verified.
  private var verified = ExtentSet()
  /// The mirrors that are proven to lie.
  private var liars: Set<Int> = []
  /// The present pieces that wait to be hashed.
  private var pending: [PieceTable.Check] = []
  /// Counts the restarts; a restart invalidates the work in flight on other threads.
  private(set) var generation = 0
  /// Whether a thread hashes pieces.
  private var isVerifying = false
  /// The error of the last wrong piece, which is absent again; nil after ``takeRefutation()``.
  private(set) var refutation: TransferError?

  /// The maximum number of pieces that are hashed before their results are evaluated.
  private static let batchCount = 16

  /// Enables the comparison if the whole file is fetched unmodified to a readable destination.
  init(_ request: Request, store: BodyStore, client: ExchangeClient) {
    let isComparable =
      request.method == .get && request.range == nil && !request.decodesContent && store.canDigest
    hashes = isComparable ? request.pieces : nil
    url = request.url
    self.store = store
    self.client = client
  }

  /// Whether pieces are compared.
  var isActive: Bool { pieces != nil }

  // MARK: Received bytes

  /// Starts tracking pieces once the length is known.
  func begin(_ table: SegmentTable) {
    guard pieces == nil, let hashes, table.isLengthKnown else { return }
    pieces = PieceTable(hashes: hashes, length: table.target.upperBound)
    for extent in table.extents.extents {
      recordArrival(of: extent, from: PieceTable.unknownServer, by: .stream)
    }
  }

  /// The parts of `range` that `carrier` may bring.
  func admitted(_ range: ByteRange, by carrier: PieceTable.Carrier) -> [ByteRange] {
    pieces?.admitted(range, by: carrier) ?? [range]
  }

  /// Records stored bytes, which `carrier` brought from the server `mirror`.
  func recordArrival(of range: ByteRange, from mirror: Int, by carrier: PieceTable.Carrier) {
    pending += pieces?.note(range, from: mirror, by: carrier, extents: verified).checks ?? []
  }

  /// Drops the bytes of unverified pieces to which a server contributed that has sent wrong bytes.
  ///
  /// - Returns: the bytes that the caller must forget, too.
  func disown(_ mirror: Int) -> [ByteRange] {
    liars.insert(mirror)
    return pieces?.disown(mirror) ?? []
  }

  /// Whether a mirror is proven to lie, so that its late bytes do not count.
  func isLiar(_ mirror: Int) -> Bool { liars.contains(mirror) }

  /// Resets everything for a restart.
  func forget() {
    pieces = nil
    verified = ExtentSet()
    pending = []
    refutation = nil
    liars = []
    generation += 1
  }

  /// The result of the pieces for a complete file.
  enum State {
    /// Every piece is verified, or none needs to be.
    case verified
    /// Some are not compared yet.
    case unverified
    /// The file has a different number of pieces.
    case mismatch(TransferError)
  }

  /// The result of the pieces for the complete file of `table`.
  func state(of table: SegmentTable) -> State {
    guard let hashes else { return .verified }
    begin(table)
    guard let pieces else {
      let count = hashes.digests.count
      return .mismatch(
        TransferError(
          .checksumMismatch, url,
          "the file has \(table.target.upperBound) bytes, which are not \(count) pieces"))
    }
    return verified.contains(0..<pieces.length) ? .verified : .unverified
  }

  /// Whether every piece is verified.
  var areAllVerified: Bool { pieces.map { verified.contains(0..<$0.length) } ?? false }

  // MARK: Hashing

  /// The hashes of some pieces.
  struct Batch: Sendable {
    fileprivate let results: [(check: PieceTable.Check, digest: Result<Checksum, FileFailure>)]
    fileprivate let generation: Int
  }

  /// Hashes the present pieces on a separate thread, because that reads the disk and takes time.
  ///
  /// - Parameter body: gets the hashes on the network thread; not called if no piece is hashed.
  func verify(then body: @escaping @Sendable (Result<Batch, TransferError>) -> Void) {
    guard !isVerifying, !pending.isEmpty, let pieces else { return }
    let batch = pending.prefix(Self.batchCount)
    pending.removeFirst(batch.count)
    isVerifying = true
    let (generation, algorithm) = (generation, pieces.hashes.algorithm)
    store.run { sink in
      batch.compactMap { check in
        sink.digester(of: check.range, algorithm: algorithm).map { (check: check, digest: $0) }
      }
    } then: { [self] jobs in
      hash((try? jobs.get()) ?? [], count: batch.count, generation: generation, then: body)
    }
  }

  /// Runs digesters on a separate thread.
  ///
  /// - Parameters:
  ///   - jobs: the pieces with their digesters.
  ///   - count: the expected number of jobs.
  ///   - generation: the generation that they belong to.
  ///   - body: gets the hashes.
  private func hash(
    _ jobs: [(check: PieceTable.Check, digest: @Sendable () throws(FileFailure) -> Checksum)],
    count: Int, generation: Int,
    then body: @escaping @Sendable (Result<Batch, TransferError>) -> Void
  ) {
    // After a restart, discarded pieces may have no digester.
    guard jobs.count == count || generation != self.generation else {
      isVerifying = false
      // The destination is unusable; waiting for it would never end.
      return body(
        .failure(
          TransferError(.destination, url, "the pieces cannot be read again to be compared")))
    }
    let work: @Sendable () -> Void = { [self] in
      let results = jobs.map { job -> (PieceTable.Check, Result<Checksum, FileFailure>) in
        do throws(FileFailure) {
          return (job.check, .success(try job.digest()))
        } catch {
          return (job.check, .failure(error))
        }
      }
      let batch = Batch(results: results, generation: generation)
      client.perform { [self] in
        isVerifying = false
        body(.success(batch))
      }
    }
    // If no thread can be created, the network thread waits: slow, but correct.
    if !spawnThread(name: "httpfs-verify", work) { work() }
  }

  /// Whether a batch belongs to the current generation; others say nothing about the present bytes.
  func isCurrent(_ batch: Batch) -> Bool { batch.generation == generation }

  /// The result of a comparison.
  struct Finding {
    let range: ByteRange
    /// The server that sent wrong bytes, if known.
    let culprit: Int?
    /// The error of a wrong piece; nil if it is right.
    let error: TransferError?
    /// Whether no remaining server may have the right bytes.
    let isLost: Bool
    /// How often the piece was wrong.
    let failureCount: Int
  }

  /// Compares the pieces of a batch in order.
  ///
  /// - Parameters:
  ///   - batch: the hashes.
  ///   - trusted: the servers that are still in use.
  ///   - take: handles each finding before the next piece is compared.
  /// - Throws: why a piece could not be read, or the error of `take`.
  func compare(
    _ batch: Batch, trusted: @autoclosure () -> [Int],
    _ take: (Finding) throws(TransferError) -> Void
  ) throws(TransferError) {
    for (check, digest) in batch.results {
      switch digest {
      case .failure(let failure): throw failure.error(at: url)
      case .success(let found):
        if let finding = finding(found, of: check, trusted: trusted()) { try take(finding) }
      }
    }
  }

  /// The finding for the hash of a piece; nil if the piece is no longer present.
  private func finding(
    _ found: Checksum, of check: PieceTable.Check, trusted: [Int]
  ) -> Finding? {
    guard let hashes = pieces?.hashes else { return nil }
    let wanted = Checksum(algorithm: found.algorithm, digest: hashes.digests[check.piece])
    let matches = found == wanted
    let culprit = pieces?.culprit(of: check, matches: matches, trusted: trusted)
    guard let outcome = pieces?.settle(check, matches: matches, trusted: trusted),
      outcome != .outdated
    else { return nil }
    var error: TransferError?
    if matches {
      verified.insert(check.range)
    } else {
      let (first, last) = (check.range.lowerBound, check.range.upperBound - 1)
      error = TransferError(
        .checksumMismatch, url,
        "checksum mismatch for bytes \(first)-\(last): expected \(wanted), got \(found)")
      if outcome != .lost { refutation = error }
    }
    return Finding(
      range: check.range, culprit: culprit, error: error, isLost: outcome == .lost,
      failureCount: max(1, pieces?.failureCount(ofPiece: check.piece) ?? 1))
  }

  // MARK: Wrong pieces

  /// Returns the error of a wrong piece and clears it, because the piece is requested now.
  func takeRefutation() -> TransferError? {
    defer { refutation = nil }
    return refutation
  }

  /// A wrong piece, which a single mirror must bring.
  struct Suspect {
    let piece: Int
    let range: ByteRange
    /// The mirrors to avoid, if there are others.
    let excluded: Set<Int>
  }

  /// The wrong pieces that must be requested again, at most `count`.
  func suspects(atMost count: Int, where isWanted: (Int) -> Bool) -> [Suspect] {
    guard let pieces else { return [] }
    var suspects: [Suspect] = []
    for piece in pieces.suspects where !pieces.isChecking(piece: piece) && isWanted(piece) {
      guard suspects.count < count else { break }
      suspects.append(
        Suspect(
          piece: piece, range: pieces.hashes.range(ofPiece: piece, length: pieces.length),
          excluded: pieces.excluded(fromPiece: piece)))
    }
    return suspects
  }

  func isSuspect(_ piece: Int) -> Bool { pieces?.isSuspect(piece: piece) == true }

  /// The bytes of wrong pieces, which ordinary requests skip.
  var wrongBytes: ExtentSet { pieces?.wrongBytes ?? ExtentSet() }

  /// Forgets the bytes of a suspect piece from other requests, so that one segment's request brings
  /// it.
  ///
  /// - Returns: the bytes that the caller must forget, too; nil if the piece is not known.
  func restart(_ piece: Int, by segmentID: Int) -> ByteRange? {
    pieces?.restart(piece: piece, by: segmentID)
  }
}
