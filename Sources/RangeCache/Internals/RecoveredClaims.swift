import ExtentRecord
import HTTPTransferCore
import LinuxSystem
import Synchronization

/// The claims that a record had when its entry was opened; read when first needed.
final class RecoveredClaims: Sendable {
  private let folder: EntryFolder
  private let salt: UInt64
  private let end: LogEnd
  private let known = Mutex<ClaimIndex?>(nil)

  /// Creates the claims without reading them.
  ///
  /// - Parameters:
  ///   - header: the header of the record.
  ///   - end: the end of its log at the opening.
  ///   - context: shared by all entries.
  init(header: RecordHeader, end: LogEnd, context: CacheContext) {
    folder = context.folder(of: header.key)
    salt = header.salt
    self.end = end
  }

  /// The claims that overlap `range`, ascending.
  func claims(about range: ByteRange) throws(CacheError) -> [ClaimIndex.Claim] {
    if let known = known.withLock({ $0 }) { return known.claims(about: range) }
    let index = try read()
    known.withLock { $0 = index }
    return index.claims(about: range)
  }

  private func read() throws(CacheError) -> ClaimIndex {
    var claims: [ClaimIndex.Claim] = []
    // Without a record there are no claims, so all bytes count as damaged.
    if let record = try folder.openRecord(salt: salt) {
      let log = LogReader(descriptor: record, start: end.start, salt: salt)
      do throws(ErrorNumber) {
        _ = try log.read { (sequence, record) throws(ErrorNumber) in
          guard sequence <= end.sequence,
            case .extent(let offset, let byteCount, let contentHash) = record
          else { return }
          claims.append(
            ClaimIndex.Claim(
              range: offset..<(offset + byteCount), contentHash: contentHash))
        }
      } catch {
        throw CacheError(error, path: folder.path)
      }
    }
    return ClaimIndex(claims)
  }
}
