import HTTPTransferCore

/// The part of a Metalink about one file, as far as it was read.
struct MetalinkFile {
  /// The `name` attribute.
  let name: String
  /// The line of its start tag.
  let line: Int
  /// Its length in bytes.
  var length: Int64?
  /// The hashes of the whole file that httpfs can calculate.
  var checksums: [Checksum] = []
  /// The lists of piece hashes that httpfs can calculate.
  var pieceLists: [PieceList] = []
  private var urls: [RankedURL] = []
  private var known: Set<RemoteURL> = []
  /// Whether one of its URLs was malformed, which is a separate error.
  var hasMalformedURL = false

  /// A URL and its rank: the lowest rank is used first.
  private struct RankedURL {
    let url: RemoteURL
    let rank: Int
  }

  init(name: String, line: Int) {
    self.name = name
    self.line = line
  }

  /// Adds a URL; a duplicate, of whatever rank, counts once.
  ///
  /// - Returns: whether there is room for it.
  mutating func add(_ url: RemoteURL, rank: Int) -> Bool {
    guard known.insert(url).inserted else { return true }
    guard urls.count < SourceList.maximumURLCount else { return false }
    urls.append(RankedURL(url: url, rank: rank))
    return true
  }

  /// The URLs, the preferred ones first, then in the document's order.
  var rankedURLs: [RemoteURL] {
    urls.enumerated().sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }
      .map(\.element.url)
  }

  /// The strongest hash of the whole file: the one with the longest digest.
  var checksum: Checksum? {
    checksums.max { $0.algorithm.digestByteCount < $1.algorithm.digestByteCount }
  }

  /// The strongest list of piece hashes that fits the length, if that is known.
  var pieces: PieceHashes? {
    pieceLists.compactMap(\.hashes)
      .filter { hashes in length.map { hashes.covers(length: $0) } ?? true }
      .max { $0.algorithm.digestByteCount < $1.algorithm.digestByteCount }
  }
}

/// One list of piece hashes, as far as it was read.
struct PieceList {
  let algorithm: Checksum.Algorithm
  let pieceByteCount: Int64
  /// By the pieces' numbers.
  private var digests: [Int: [UInt8]] = [:]
  private var count = 0

  init(algorithm: Checksum.Algorithm, pieceByteCount: Int64) {
    self.algorithm = algorithm
    self.pieceByteCount = pieceByteCount
  }

  /// Adds the next hash.
  ///
  /// - Parameters:
  ///   - digest: its bytes.
  ///   - piece: the piece's number, counted from 0, if the document gives it (version 3); nil for
  ///     the next one.
  mutating func append(_ digest: [UInt8], piece: Int?) {
    digests[piece ?? count] = digest
    count += 1
  }

  /// The hashes; nil unless the numbers are 0, 1, 2 …, each once.
  var hashes: PieceHashes? {
    let ordered = (0..<count).compactMap { digests[$0] }
    guard ordered.count == count else { return nil }
    return PieceHashes(algorithm: algorithm, pieceByteCount: pieceByteCount, digests: ordered)
  }
}
