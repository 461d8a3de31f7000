internal import HTTPTransferCore
internal import HTTPTypes

/// Compares the pieces of one transfer with what they must hash to as soon as they are there.
///
/// `@unchecked Sendable`: used on the network thread only.
final class PieceVerifier: @unchecked Sendable {
  /// What the pieces must hash to; nil if the file is not compared by pieces.
  let hashes: PieceHashes?
  private let url: RemoteURL
  private let store: BodyStore
  private let client: HTTPClient
  /// What has arrived of pieces that are not verified; nil before the length is known.
  private var pieces: PieceTable?
  /// The bytes of the pieces that are verified.
  private var verified = ExtentSet()
  /// The pieces that are there and wait to be hashed.
  private var pending: [PieceTable.Check] = []
  /// Counts the new beginnings, which make what is under way on other threads void.
  private(set) var generation = 0
  /// Whether a thread hashes pieces.
  private var isVerifying = false
  /// How a piece was wrong that is absent again since; nil where no request has been planned for it yet.
  private(set) var refutation: TransferError?

  /// How many pieces are hashed before the results are looked at.
  private static let batchCount = 16

  /// Compares pieces where the whole file is fetched as it is, to where it can be read again.
  init(_ request: Request, store: BodyStore, client: HTTPClient) {
    let isComparable =
      request.method == .get && request.range == nil && !request.decodesContent && store.canDigest
    hashes = isComparable ? request.pieces : nil
    url = request.url
    self.store = store
    self.client = client
  }

  /// Whether pieces are compared.
  var isActive: Bool { pieces != nil }

  // MARK: What has arrived

  /// Begins to keep account of pieces once the length is known.
  func begin(_ table: SegmentTable) {
    guard pieces == nil, let hashes, table.isLengthKnown else { return }
    pieces = PieceTable(hashes: hashes, length: table.target.upperBound)
    for extent in table.extents.extents {
      noteArrival(of: extent, from: PieceTable.unknownServer, by: .stream)
    }
  }

  /// The parts of `range` that are wanted of `carrier`.
  func admitted(_ range: ByteRange, by carrier: PieceTable.Carrier) -> [ByteRange] {
    pieces?.admitted(range, by: carrier) ?? [range]
  }

  /// Bytes have been stored, which `carrier` has brought from the server `mirror`.
  func noteArrival(of range: ByteRange, from mirror: Int, by carrier: PieceTable.Carrier) {
    pending += pieces?.note(range, from: mirror, by: carrier, extents: verified).checks ?? []
  }

  /// Everything starts over.
  func forget() {
    pieces = nil
    verified = ExtentSet()
    pending = []
    refutation = nil
    generation += 1
  }

  /// What the pieces of a complete file say of it.
  enum State {
    /// Every piece is verified, or none needs to be.
    case verified
    /// Some are still to be compared.
    case unverified
    /// The file has another number of pieces.
    case mismatch(TransferError)
  }

  /// What the pieces of the complete file of `table` say of it.
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

  /// Hashes the pieces that are there, on a thread of its own: it reads the disk, and takes its time.
  ///
  /// - Parameter body: gets the hashes on the network thread; not called where nothing is hashed.
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

  /// Runs digesters on a thread of their own.
  ///
  /// - Parameters:
  ///   - jobs: the pieces with their digesters.
  ///   - count: how many there must be.
  ///   - generation: of which beginning they are.
  ///   - body: gets the hashes.
  private func hash(
    _ jobs: [(check: PieceTable.Check, digest: @Sendable () throws(FileFailure) -> Checksum)],
    count: Int, generation: Int,
    then body: @escaping @Sendable (Result<Batch, TransferError>) -> Void
  ) {
    // Of what has been thrown away meanwhile there may be none.
    guard jobs.count == count || generation != self.generation else {
      isVerifying = false
      // The destination is as good as gone; to wait for it would be to wait for ever.
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
    // Without a thread to spare the network thread waits: slow, and right.
    if !spawnThread(name: "httpfs-verify", work) { work() }
  }

  /// Whether a batch is of the present beginning: else it says nothing of what is there.
  func isCurrent(_ batch: Batch) -> Bool { batch.generation == generation }

  /// What a comparison says.
  struct Finding {
    let range: ByteRange
    /// The server that has brought wrong bytes, if it is known.
    let liar: Int?
    /// How the piece is wrong; nil if it is right.
    let error: TransferError?
    /// Whether no server is left that may have it right.
    let isLost: Bool
    /// How often it was wrong.
    let failureCount: Int
  }

  /// Compares the pieces of a batch in order.
  ///
  /// - Parameters:
  ///   - batch: the hashes.
  ///   - trusted: the servers that are still asked.
  ///   - take: what is done about each finding, before the next piece is compared.
  /// - Throws: why a piece could not be read, or what `take` throws.
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

  /// What the hash of a piece says; nil where the piece is not there any more.
  private func finding(
    _ found: Checksum, of check: PieceTable.Check, trusted: [Int]
  ) -> Finding? {
    guard let hashes = pieces?.hashes else { return nil }
    let wanted = Checksum(algorithm: found.algorithm, digest: hashes.digests[check.piece])
    let matches = found == wanted
    let liar = pieces?.liar(of: check, matches: matches, trusted: trusted)
    guard let outcome = pieces?.settle(check, matches: matches, trusted: trusted),
      outcome != .outdated
    else { return nil }
    var error: TransferError?
    if matches {
      verified.insert(check.range)
    } else {
      let (first, last) = (check.range.lowerBound, check.range.upperBound - 1)
      error = TransferError(
        .checksumMismatch, url, "bytes \(first)-\(last) hash to \(found), not to \(wanted)")
      if outcome != .lost { refutation = error }
    }
    return Finding(
      range: check.range, liar: liar, error: error, isLost: outcome == .lost,
      failureCount: max(1, pieces?.failureCount(ofPiece: check.piece) ?? 1))
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

  /// The wrong pieces that must be requested again.
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

  /// Forgets what others have brought of a suspect piece, so that it comes by the request of one segment.
  ///
  /// - Returns: the bytes to forget, too; nil if the piece is not known.
  func restart(_ piece: Int, by segmentID: Int) -> ByteRange? {
    pieces?.restart(piece: piece, by: segmentID)
  }
}
