import ExtentRecord
public import HTTPTransferCore
import LinuxSystem
import Synchronization

extension CacheEntry {
  /// The result of verifying cached bytes.
  public struct Verification: Sendable {
    /// The bytes with the recorded hash.
    public var intact = ExtentSet()
    /// The bytes that have another hash, cannot be read, or have no record.
    public var damaged = ExtentSet()

    public init() {}
  }

  /// Reads the blocks that hold the bytes of `range` and compares them with their recorded hashes.
  ///
  /// Call it for bytes of ``believedExtents`` before their first use, because a disk may have
  /// changed them since they were committed. It verifies blocks as they were stored, so the result
  /// may reach beyond `range`. It reads the disk, and at the first call the whole record.
  ///
  /// - Parameter range: the bytes that are about to be used.
  /// - Returns: which bytes are intact and which must not be used; both together contain all of
  ///   `range`.
  /// - Throws: if the record cannot be read; nothing is then known.
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

  /// The claims that existed when the entry was opened.
  private func claimIndex() throws(CacheError) -> ClaimIndex {
    if let known = state.withLock({ $0.claims }) { return known }
    var claims: [ClaimIndex.Claim] = []
    // Without a record there are no claims, so all bytes count as damaged.
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
