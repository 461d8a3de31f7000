/// The pieces of one version of a file: the unverified bytes, the servers that sent them, and the
/// record of pieces with a wrong hash.
///
/// A value without I/O; each download and each mounted file has one. A piece becomes present (in
/// the caller's `extents`) as a whole; before that, no reader sees its bytes. Servers are
/// identified as in ``MirrorSet``.
package struct PieceTable: Sendable {
  package let hashes: PieceHashes
  /// The complete length in bytes.
  package let length: Int64

  /// A complete piece that is to be hashed.
  package struct Check: Sendable, Hashable {
    package let piece: Int
    package let range: ByteRange
    /// Distinguishes a check from earlier ones of the same piece, whose bytes were dropped.
    let ticket: Int
  }

  /// The result of a hash.
  package enum Outcome: Sendable, Hashable {
    /// No result: the hashed bytes were dropped.
    case outdated
    /// The piece is right and is present from now on.
    case verified
    /// The piece is wrong and is fetched again.
    case mismatch
    /// The piece is wrong, and no server is left that may have the right one.
    case lost
  }

  private struct Piece: Sendable {
    var contributors: Set<Int> = []
    /// The ticket of the check in progress.
    var ticket: Int?
    /// How often each server, as the only contributor, has sent a wrong piece.
    var failures: [Int: Int] = [:]
    /// How often the piece was wrong without a server to blame.
    var sharedFailureCount = 0
    /// The servers that together contributed a wrong piece.
    var suspected: Set<Int> = []
    /// The request that fetches the piece alone since it was wrong.
    var request: Int?
  }

  /// The bytes that have arrived and wait for their hash.
  package private(set) var arrived = ExtentSet()
  /// The pieces with a record.
  private var pieces: [Int: Piece] = [:]
  /// The bytes of whole pieces that were wrong and are to be fetched again.
  private var suspectBytes = ExtentSet()
  /// The bytes of whole pieces that no server is left for.
  private var lostBytes = ExtentSet()
  private var lastTicket = 0
  /// How many pieces each server has had a part in that were wrong with it and right without it:
  /// such a server is asked alone for the next one, which shows whether it sends wrong bytes.
  private var eliminations: [Int: Int] = [:]

  /// How often the only server left may send a wrong piece.
  package static let attemptLimit = 2

  /// Stands for the unknown origin of bytes, such as those of an earlier run.
  package static let unknownServer = -1

  /// What brought bytes.
  package enum Carrier: Sendable, Hashable {
    /// One of several requests, by its number.
    case request(Int)
    /// A stream of the whole file, which is the only request; also an earlier run.
    case stream
  }

  /// - Returns: nil if the hashes do not match a file of `length` bytes.
  package init?(hashes: PieceHashes, length: Int64) {
    guard hashes.covers(length: length) else { return nil }
    self.hashes = hashes
    self.length = length
  }

  // MARK: Locations

  /// `range` extended to whole pieces.
  package func wholePieces(around range: ByteRange) -> ByteRange {
    let touched = hashes.pieces(touching: range)
    guard !touched.isEmpty else { return range }
    let first = hashes.range(ofPiece: touched.lowerBound, length: length)
    let last = hashes.range(ofPiece: touched.upperBound - 1, length: length)
    return first.lowerBound..<last.upperBound
  }

  /// The bytes that need no ordinary request.
  ///
  /// They are present (`extents`), have arrived, are fetched from one server alone, or cannot be
  /// obtained.
  package func settled(with extents: ExtentSet) -> ExtentSet {
    extents.union(arrived).union(wrongBytes)
  }

  /// The parts of `range` that are neither present (`extents`) nor have arrived.
  package func holes(in range: ByteRange, extents: ExtentSet) -> [ByteRange] {
    extents.holes(in: range).flatMap { arrived.holes(in: $0) }
  }

  // MARK: Receiving

  /// The parts of `range` that count if `carrier` brought them.
  ///
  /// Of a piece that was wrong, only the bytes of the request that fetches it alone count. Another
  /// request, such as one to a server that was just dropped, may still bring bytes of the piece.
  /// They would prove nothing about the server of the new request.
  package func admitted(_ range: ByteRange, by carrier: Carrier) -> [ByteRange] {
    guard case .request(let request) = carrier else { return [range] }
    var foreign = ExtentSet()
    for index in hashes.pieces(touching: range) {
      guard isWrong(piece: index), pieces[index]?.request != request else { continue }
      foreign.insert(hashes.range(ofPiece: index, length: length))
    }
    return foreign.holes(in: range)
  }

  /// Records bytes that have arrived.
  ///
  /// Bytes that had arrived before do not count, nor do those that are not ``admitted(_:by:)``.
  ///
  /// - Parameters:
  ///   - range: the bytes.
  ///   - mirror: the server that sent them.
  ///   - carrier: what brought them.
  ///   - extents: the extents that are present.
  /// - Returns: the number of new bytes, and the pieces that are now complete.
  package mutating func note(
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

  /// Whether the bytes of `check` have not been dropped.
  package func isCurrent(_ check: Check) -> Bool { pieces[check.piece]?.ticket == check.ticket }

  /// Drops the bytes of `range`, arrived or present: pending hashes of them no longer count.
  ///
  /// No server is to blame for bytes that are gone: a piece without bytes has no contributors, and
  /// of a piece that keeps some, it is unknown whose they are.
  ///
  /// - Returns: the number of arrived bytes that were dropped.
  @discardableResult
  package mutating func forget(_ range: ByteRange) -> Int64 {
    let touched = hashes.pieces(touching: range)
    let byteCount = arrived.remove(range)
    if touched.count <= pieces.count {
      for index in touched { dropContributors(ofPiece: index) }
    } else {
      for index in pieces.keys where touched.contains(index) { dropContributors(ofPiece: index) }
    }
    return byteCount
  }

  /// Cancels the check of a piece of which bytes are gone.
  private mutating func dropContributors(ofPiece index: Int) {
    guard let piece = pieces[index] else { return }
    pieces[index]?.ticket = nil
    guard !piece.contributors.isEmpty else { return }
    let keepsBytes = arrived.overlaps(hashes.range(ofPiece: index, length: length))
    pieces[index]?.contributors = keepsBytes ? [Self.unknownServer] : []
  }

  /// Drops the bytes of all unverified pieces to which `server` contributed.
  ///
  /// The server is proven to send wrong bytes: with them, more pieces would be wrong, and other
  /// servers that contributed to them would be suspected.
  ///
  /// - Returns: the ranges of these pieces.
  package mutating func disown(_ server: Int) -> [ByteRange] {
    let ranges = pieces.keys.sorted().filter { pieces[$0]?.contributors.contains(server) == true }
      .map { hashes.range(ofPiece: $0, length: length) }
    for range in ranges { forget(range) }
    return ranges
  }

  /// Whether bytes of obtainable pieces are still missing.
  package func isWanting(extents: ExtentSet) -> Bool {
    holes(in: 0..<length, extents: extents).contains { !lostBytes.contains($0) }
  }

  // MARK: Hashes

  /// Records the result of a hash.
  ///
  /// - Parameters:
  ///   - check: the check.
  ///   - matches: whether the hash is right.
  ///   - trusted: the servers that have not been refused.
  /// - Returns: the outcome for the piece.
  package mutating func settle(_ check: Check, matches: Bool, trusted: [Int]) -> Outcome {
    guard isCurrent(check), var piece = pieces[check.piece] else { return .outdated }
    arrived.remove(check.range)
    if matches {
      if let eliminated = Self.eliminated(by: piece) { eliminations[eliminated, default: 0] += 1 }
      pieces[check.piece] = nil
      suspectBytes.remove(check.range)
      lostBytes.remove(check.range)
      return .verified
    }
    let contributors = piece.contributors
    // The bytes of an earlier run are replaced. They are no failure of a server.
    let isInherited = !isWrong(piece: check.piece) && contributors.contains(Self.unknownServer)
    piece.contributors = []
    piece.ticket = nil
    var isLost = false
    let only = Self.only(of: contributors)
    if let only {
      let hasOthers = Self.hasOthers(than: only, for: piece, among: trusted)
      piece.failures[only, default: 0] += 1
      isLost = !hasOthers && piece.failures[only, default: 0] >= Self.attemptLimit
    } else if !isInherited {
      piece.suspected = contributors
      piece.sharedFailureCount += 1
      // Only one server is asked for the piece now. If streams of several servers still bring it
      // together, the attempts end as well.
      isLost = piece.sharedFailureCount > max(1, trusted.count)
    }
    pieces[check.piece] = piece
    suspectBytes.remove(check.range)
    lostBytes.remove(check.range)
    if isLost { lostBytes.insert(check.range) } else { suspectBytes.insert(check.range) }
    return isLost ? .lost : .mismatch
  }

  /// The server that certainly sent wrong bytes, according to `check`.
  ///
  /// That is the only contributor of a wrong piece. If several servers contributed, nothing is
  /// certain: a server that sends the piece right when it is asked alone may have sent it wrong
  /// before.
  ///
  /// - Parameters:
  ///   - check: the check.
  ///   - matches: whether the hash is right.
  ///   - trusted: the servers that have not been refused.
  /// - Returns: nil if no server can be blamed, or no other server could be asked instead.
  package func culprit(of check: Check, matches: Bool, trusted: [Int]) -> Int? {
    guard !matches, isCurrent(check), let piece = pieces[check.piece] else { return nil }
    guard let only = Self.only(of: piece.contributors), trusted.contains(only) else { return nil }
    return Self.hasOthers(than: only, for: piece, among: trusted) ? only : nil
  }

  /// The only server with a part in the wrong piece and none in the right one.
  private static func eliminated(by piece: Piece) -> Int? {
    only(of: piece.suspected.subtracting(piece.contributors))
  }

  /// The only server among `contributors`; nil if there are several or it is unknown.
  private static func only(of contributors: Set<Int>) -> Int? {
    contributors.count == 1 ? contributors.first { $0 != unknownServer } : nil
  }

  /// Whether another server is left that has not sent the piece wrong.
  private static func hasOthers(than index: Int, for piece: Piece, among trusted: [Int]) -> Bool {
    trusted.contains { $0 != index && piece.failures[$0] == nil }
  }

  /// How often a piece was wrong; 0 once it is right.
  package func failureCount(ofPiece index: Int) -> Int {
    guard let piece = pieces[index] else { return 0 }
    return piece.failures.values.reduce(piece.sharedFailureCount, +)
  }

  /// The servers to avoid for a piece that was wrong, while another server is left.
  package func excluded(fromPiece index: Int) -> Set<Int> {
    guard let piece = pieces[index] else { return [] }
    let failed = Set(piece.failures.keys)
    let candidates = piece.suspected.subtracting(failed)
    let doubtful = candidates.max {
      (eliminations[$0, default: 0], $0) < (eliminations[$1, default: 0], $1)
    }
    guard let doubtful, eliminations[doubtful, default: 0] > 0 else { return failed }
    return failed.union(candidates.subtracting([doubtful]))
  }

  /// The pieces that were wrong and are to be fetched from one server alone, ascending.
  package var suspects: some Sequence<Int> {
    suspectBytes.extents.lazy.flatMap { [hashes] in hashes.pieces(touching: $0) }
  }

  /// Those of ``suspects`` with bytes in `range`, ascending.
  package func suspects(in range: ByteRange) -> some Sequence<Int> {
    suspectBytes.runs(in: range).lazy.flatMap { [hashes] in hashes.pieces(touching: $0) }
  }

  /// Whether there are ``suspects``.
  package var hasSuspects: Bool { !suspectBytes.isEmpty }

  /// Whether a piece is one of ``suspects``.
  package func isSuspect(piece index: Int) -> Bool {
    suspectBytes.overlaps(hashes.range(ofPiece: index, length: length))
  }

  /// Whether a piece was wrong and is not right yet.
  private func isWrong(piece index: Int) -> Bool {
    isSuspect(piece: index) || lostBytes.overlaps(hashes.range(ofPiece: index, length: length))
  }

  /// The bytes of all pieces that were wrong and are not right yet.
  package var wrongBytes: ExtentSet { suspectBytes.union(lostBytes) }

  /// Restarts the fetch of a suspect piece as a whole, by the request `request`.
  ///
  /// The bytes that other requests brought are dropped, and those that they still bring do not
  /// count.
  ///
  /// - Returns: its bytes.
  package mutating func restart(piece index: Int, by request: Int) -> ByteRange {
    let range = hashes.range(ofPiece: index, length: length)
    arrived.remove(range)
    pieces[index]?.request = request
    pieces[index]?.contributors = []
    pieces[index]?.ticket = nil
    return range
  }

  /// Whether a suspect piece is being hashed.
  package func isChecking(piece index: Int) -> Bool { pieces[index]?.ticket != nil }

  /// Whether some bytes of `range` cannot be obtained.
  package func isLost(_ range: ByteRange) -> Bool {
    lostBytes.overlaps(range)
  }

  /// Makes lost pieces available for another attempt by a later reader: servers may have been
  /// repaired.
  ///
  /// Bytes of them that have arrived, and the checks of these bytes, stay.
  package mutating func forgive() {
    for extent in lostBytes.extents {
      for index in hashes.pieces(touching: extent) {
        guard let piece = pieces[index], !piece.contributors.isEmpty else {
          pieces[index] = nil
          continue
        }
        pieces[index] = Piece(contributors: piece.contributors, ticket: piece.ticket)
      }
    }
    lostBytes = ExtentSet()
  }
}
