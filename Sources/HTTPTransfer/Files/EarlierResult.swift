internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import LinuxSystem

/// A file that an earlier download of the same URL finished, and that was not changed since.
///
/// It stays if the server still has that version, and is replaced otherwise.
struct EarlierResult: Sendable {
  let version: ContentVersion
  let stamp: ResultStamp
  /// A hash of the checksums that its bytes were compared with.
  let checks: String?
  /// Whether other users may write the file, and so its attributes.
  ///
  /// Then only a comparison of its bytes proves anything.
  let isWritableForOthers: Bool
  /// Held open, so that no other file can get its inode.
  let file: Descriptor

  /// Examines the file at the destination.
  ///
  /// - Returns: the result; nil if no file has the name.
  /// - Throws: ``TransferError/Code/destinationExists`` if another file has it.
  static func find(
    at location: FileLocation, key: CacheKey
  ) throws(FileFailure) -> EarlierResult? {
    let file: Descriptor
    let status: FileMetadata
    let stamp: ResultStamp
    do throws(ErrorNumber) {
      file = try SystemCalls.openForReading(location.name, in: location.directory.rawValue)
      status = try SystemCalls.status(file.rawValue)
      stamp = try ResultStamp(of: file)
    } catch {
      switch error.rawValue {
      case ENOENT: return nil
      // An unreadable file or a link is not a result of this program.
      case EACCES, EPERM, ELOOP, ENXIO: throw location.exists(location.isUnknown)
      default: throw location.failure("cannot look at '\(location.path)'", error)
      }
    }
    // Another owner may have set any attributes.
    guard status.isRegularFile, status.owner == ProcessCalls.effectiveUserID,
      let found = ResultRecord.find(file, at: location), found.key == key.hex
    else { throw location.exists(location.isUnknown) }
    guard stamp.text == found.stamp else {
      throw location.exists("has been changed since it was downloaded")
    }
    var version = found.version
    version.completeLength = stamp.byteCount
    return EarlierResult(
      version: version, stamp: stamp, checks: found.checks,
      isWritableForOthers: status.permissions & 0o022 != 0, file: file)
  }

  /// Whether its bytes have the expected hash of the whole, or else those of all pieces.
  func hashes(to checksum: Checksum?, pieces: PieceHashes?) throws(ErrorNumber) -> Bool {
    let length = stamp.byteCount
    if let checksum {
      return try RunningDigest.ofFile(
        file, range: 0..<length, algorithm: checksum.algorithm) == checksum
    }
    guard let pieces else { return true }
    var start: Int64 = 0
    for digest in pieces.digests {
      let end = start + min(pieces.pieceByteCount, length - start)
      let found = try RunningDigest.ofFile(
        file, range: start..<end, algorithm: pieces.algorithm)
      guard found == Checksum(algorithm: pieces.algorithm, digest: digest) else { return false }
      start = end
    }
    return start == length
  }

  /// Whether `name` still refers to it, and it was not changed.
  func isUntouched(as name: String, in directory: Descriptor) -> Bool {
    guard
      (try? SystemCalls.isSameFile(file.rawValue, name, in: directory.rawValue)) == true,
      let now = try? ResultStamp(of: file)
    else { return false }
    return now == stamp
  }
}
