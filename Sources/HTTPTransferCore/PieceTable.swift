/// The pieces of one version of a file: what has arrived of those whose hash has not been compared yet, who
/// has brought it, and what became of those whose hash was another.
///
/// A value without I/O, of which a download and a mounted file have one each. A piece is present (in the
/// caller's `extents`) as a whole, or not at all: what has arrived of it is nobody's to see before. Servers are
/// named as in ``MirrorSet``.
public struct PieceTable: Sendable {
  public let hashes: PieceHashes
  /// The complete length in bytes.
  public let length: Int64

  /// A piece that has arrived as a whole and is to be hashed.
  public struct Check: Sendable, Hashable {
    public let piece: Int
    public let range: ByteRange
    /// Tells a check from an earlier one of the same piece, whose bytes are gone.
    let ticket: Int
  }

  /// What a hash has shown.
  public enum Outcome: Sendable, Hashable {
    /// Nothing: the bytes that were hashed are no longer there.
    case outdated
    /// The piece is right; it is present from now on.
    case verified
    /// It is not, and is fetched again.
    case mismatch
    /// It is not, and nobody is left who may have the right one.
    case lost
  }

  private struct Piece: Sendable {
    var contributors: Set<Int> = []
    /// The ticket of the check that is under way.
    var ticket: Int?
    /// How often each server alone has brought wrong bytes of it.
    var failures: [Int: Int] = [:]
    /// How often it was wrong and nobody could be blamed.
    var sharedFailureCount = 0
    /// Who had brought it together when it was wrong.
    var suspected: Set<Int> = []
    /// Whether it has been wrong: then one server alone is asked for it.
    var isSuspect = false
    /// The request that brings it alone since it was wrong.
    var request: Int?
    var isLost = false
  }

  /// What has arrived and waits for its hash.
  public private(set) var arrived = ExtentSet()
  /// The pieces of which there is something to say.
  private var pieces: [Int: Piece] = [:]
  private var lastTicket = 0

  /// How often a server that is the only one left may bring a wrong piece.
  package static let attemptLimit = 2

  /// Stands in the place of a server for bytes of which nobody knows who brought them, as those of an earlier
  /// run.
  public static let unknownServer = -1

  /// What has brought bytes.
  public enum Carrier: Sendable, Hashable {
    /// One request of several, by its number.
    case request(Int)
    /// A stream of the whole file, beside which there is no other request; also an earlier run.
    case stream
  }

  /// - Returns: nil where the hashes are not those of a file of `length` bytes.
  public init?(hashes: PieceHashes, length: Int64) {
    guard hashes.covers(length: length) else { return nil }
    self.hashes = hashes
    self.length = length
  }

  // MARK: Places

  /// `range` grown to whole pieces.
  public func wholePieces(around range: ByteRange) -> ByteRange {
    let touched = hashes.pieces(touching: range)
    guard !touched.isEmpty else { return range }
    let first = hashes.range(ofPiece: touched.lowerBound, length: length)
    let last = hashes.range(ofPiece: touched.upperBound - 1, length: length)
    return first.lowerBound..<last.upperBound
  }

  /// What need not be asked for in the ordinary way: what is present (`extents`), has arrived, is fetched
  /// from one server alone, or cannot be had.
  public func settled(with extents: ExtentSet) -> ExtentSet {
    var settled = extents
    for extent in arrived.extents { settled.insert(extent) }
    for (index, piece) in pieces where piece.isSuspect || piece.isLost {
      settled.insert(hashes.range(ofPiece: index, length: length))
    }
    return settled
  }

  /// The parts of `range` that are neither present (`extents`) nor have arrived.
  public func holes(in range: ByteRange, extents: ExtentSet) -> [ByteRange] {
    extents.holes(in: range).flatMap { arrived.holes(in: $0) }
  }

  // MARK: Arrival

  /// The parts of `range` that count if `carrier` has brought them.
  ///
  /// A piece that was wrong counts only as far as the request that asks for it alone has brought it. Another
  /// request, such as one to a liar that has just been ended, may still bring bytes of it; they would show
  /// nothing about the server that is asked.
  public func admitted(_ range: ByteRange, by carrier: Carrier) -> [ByteRange] {
    guard case .request(let request) = carrier else { return [range] }
    var foreign = ExtentSet()
    for index in hashes.pieces(touching: range) {
      guard let piece = pieces[index], piece.isSuspect, piece.request != request else { continue }
      foreign.insert(hashes.range(ofPiece: index, length: length))
    }
    return foreign.holes(in: range)
  }

  /// Bytes have come; those that were there already do not count, nor those that are not ``admitted(_:by:)``.
  ///
  /// - Parameters:
  ///   - range: which.
  ///   - mirror: the server that has sent them.
  ///   - carrier: what has brought them.
  ///   - extents: what is present.
  /// - Returns: how many bytes are new, and the pieces that are whole now.
  public mutating func note(
    _ range: ByteRange, from mirror: Int, by carrier: Carrier, extents: ExtentSet
  ) -> (byteCount: Int64, checks: [Check]) {
    var byteCount: Int64 = 0
    let new = admitted(range, by: carrier).flatMap { holes(in: $0, extents: extents) }
    for hole in new {
      byteCount += arrived.insert(hole)
      for index in hashes.pieces(touching: hole) {
        pieces[index, default: Piece()].contributors.insert(mirror)
      }
    }
    var checks: [Check] = []
    for index in hashes.pieces(touching: range) {
      let whole = hashes.range(ofPiece: index, length: length)
      guard pieces[index]?.ticket == nil, pieces[index]?.contributors.isEmpty == false,
        holes(in: whole, extents: extents).isEmpty
      else { continue }
      lastTicket += 1
      pieces[index]?.ticket = lastTicket
      checks.append(Check(piece: index, range: whole, ticket: lastTicket))
    }
    return (byteCount, checks)
  }

  /// Whether the bytes that `check` is about are still there.
  public func isCurrent(_ check: Check) -> Bool { pieces[check.piece]?.ticket == check.ticket }

  /// What has arrived of `range`, or was present of it, is gone: no hash of it counts any more.
  ///
  /// - Returns: how many bytes had arrived.
  @discardableResult
  public mutating func forget(_ range: ByteRange) -> Int64 {
    let touched = hashes.pieces(touching: range)
    for index in pieces.keys where touched.contains(index) { pieces[index]?.ticket = nil }
    return arrived.remove(range)
  }

  /// Whether bytes are still to come, of pieces that can be had.
  public func isWanting(extents: ExtentSet) -> Bool {
    holes(in: 0..<length, extents: extents).contains { hole in
      hashes.pieces(touching: hole).contains { pieces[$0]?.isLost != true }
    }
  }

  // MARK: Hashes

  /// A hash has been compared.
  ///
  /// - Parameters:
  ///   - check: of what.
  ///   - matches: whether it is the right one.
  ///   - trusted: the servers that have not been refused.
  /// - Returns: what follows.
  public mutating func settle(_ check: Check, matches: Bool, trusted: [Int]) -> Outcome {
    guard isCurrent(check), var piece = pieces[check.piece] else { return .outdated }
    arrived.remove(check.range)
    if matches {
      pieces[check.piece] = nil
      return .verified
    }
    let contributors = piece.contributors
    // The bytes of an earlier run are replaced. They count as nobody's failure.
    let isInherited = !piece.isSuspect && contributors.contains(Self.unknownServer)
    piece.contributors = []
    piece.ticket = nil
    piece.isSuspect = true
    let only = Self.only(of: contributors)
    if let only {
      let hasOthers = Self.hasOthers(than: only, for: piece, among: trusted)
      piece.failures[only, default: 0] += 1
      piece.isLost = !hasOthers && piece.failures[only, default: 0] >= Self.attemptLimit
    } else if !isInherited {
      piece.suspected = contributors
      piece.sharedFailureCount += 1
      // One server alone is asked for it now. Where streams of several bring it together all the same, that
      // has an end, too.
      piece.isLost = piece.sharedFailureCount > max(1, trusted.count)
    }
    pieces[check.piece] = piece
    return piece.isLost ? .lost : .mismatch
  }

  /// Who has certainly sent wrong bytes, as `check` shows: who has brought all of a piece that is wrong; or of
  /// those who had brought a wrong one together, the only one who has had no part in the right one.
  ///
  /// - Parameters:
  ///   - check: of what.
  ///   - matches: whether it is the right hash.
  ///   - trusted: the servers that have not been refused.
  /// - Returns: nil where nobody can be blamed, or could be asked instead.
  public func liar(of check: Check, matches: Bool, trusted: [Int]) -> Int? {
    guard isCurrent(check), let piece = pieces[check.piece] else { return nil }
    if matches {
      let rest = Self.only(of: piece.suspected.subtracting(piece.contributors))
      return rest.flatMap { trusted.contains($0) && trusted.count > 1 ? $0 : nil }
    }
    guard let only = Self.only(of: piece.contributors), trusted.contains(only) else { return nil }
    return Self.hasOthers(than: only, for: piece, among: trusted) ? only : nil
  }

  /// The server that is all of `contributors`.
  private static func only(of contributors: Set<Int>) -> Int? {
    contributors.count == 1 ? contributors.first { $0 != unknownServer } : nil
  }

  /// Whether somebody can be asked for a piece who has not brought it wrong yet.
  private static func hasOthers(than index: Int, for piece: Piece, among trusted: [Int]) -> Bool {
    trusted.contains { $0 != index && piece.failures[$0] == nil }
  }

  /// How often a piece was wrong; 0 once it is right.
  public func failureCount(ofPiece index: Int) -> Int {
    guard let piece = pieces[index] else { return 0 }
    return piece.failures.values.reduce(piece.sharedFailureCount, +)
  }

  /// Who must not be asked for a piece that was wrong, while there is somebody else.
  public func excluded(fromPiece index: Int) -> Set<Int> {
    Set(pieces[index]?.failures.keys.map { $0 } ?? [])
  }

  /// The pieces that were wrong and are to be fetched from one server alone, ascending.
  public var suspects: [Int] {
    pieces.keys.filter { pieces[$0]?.isSuspect == true && pieces[$0]?.isLost == false }.sorted()
  }

  /// The request `request` asks for a suspect piece, as a whole: what another one has brought of it is
  /// forgotten, and what another one still brings does not count.
  ///
  /// - Returns: its bytes.
  public mutating func restart(piece index: Int, by request: Int) -> ByteRange {
    let range = hashes.range(ofPiece: index, length: length)
    arrived.remove(range)
    pieces[index]?.request = request
    pieces[index]?.contributors = []
    pieces[index]?.ticket = nil
    return range
  }

  /// Whether a suspect piece is being hashed.
  public func isChecking(piece index: Int) -> Bool { pieces[index]?.ticket != nil }

  /// Whether bytes of `range` cannot be had.
  public func isLost(_ range: ByteRange) -> Bool {
    guard pieces.values.contains(where: \.isLost) else { return false }
    return hashes.pieces(touching: range).contains { pieces[$0]?.isLost == true }
  }

  /// Lets what was lost be tried again, by a reader who comes later: the servers may have been repaired.
  public mutating func forgive() {
    for index in pieces.keys where pieces[index]?.isLost == true { pieces[index] = nil }
  }
}
