import ExtentRecord
public import HTTPTransferCore
import Synchronization

extension CacheEntry {
  /// What a look at cached bytes has shown.
  public struct Verification: Sendable {
    /// Whose hash is the recorded one.
    public var intact = ExtentSet()
    /// Whose hash is another, or that cannot be read, or that nothing is recorded of.
    public var damaged = ExtentSet()

    public init() {}
  }

  /// Reads the blocks that hold the bytes of `range` and compares them with their recorded hashes.
  ///
  /// For bytes of ``believedExtents``, before their first use: a disk may have changed them since
  /// they were committed. The blocks are looked at as they were stored, so the result may reach
  /// beyond `range`. Reads the disk, and at the first call the whole record.
  ///
  /// - Parameter range: what is about to be used.
  /// - Returns: which bytes are right, and which must not be used; all of `range` is in one of them.
  /// - Throws: where the record cannot be read: then nothing is known.
  public func verify(_ range: ByteRange) throws(CacheError) -> Verification {
    let index = try claimIndex()
    var result = Verification()
    var verifier = ExtentVerifier(data: data)
    var refuted: [ByteRange] = []
    for claim in index.claims(about: range) {
      let isIntact = verifier.matches(
        offset: claim.range.lowerBound, byteCount: claim.range.byteCount,
        contentHash: claim.contentHash)
      if isIntact { result.intact.insert(claim.range) } else { refuted.append(claim.range) }
    }
    for range in refuted + [range] {
      for hole in result.intact.holes(in: range) { result.damaged.insert(hole) }
    }
    return result
  }

  /// The claims that were there when the entry was opened.
  private func claimIndex() throws(CacheError) -> ClaimIndex {
    if let known = state.withLock({ $0.claims }) { return known }
    var claims: [ClaimIndex.Claim] = []
    // Without a record there is no claim: everything is damaged then.
    if let record = try directory.openRecord(of: key, salt: salt) {
      let log = LogReader(descriptor: record, start: logStart, salt: salt)
      do throws(ErrorNumber) {
        _ = try log.read { (sequence, record) throws(ErrorNumber) in
          guard sequence <= recoveredSequence,
            case .extent(let offset, let byteCount, let contentHash) = record
          else { return }
          claims.append(
            ClaimIndex.Claim(
              range: offset..<(offset + byteCount), contentHash: contentHash))
        }
      } catch {
        throw CacheError(error, path: path)
      }
    }
    let index = ClaimIndex(claims)
    state.withLock { $0.claims = index }
    return index
  }
}
