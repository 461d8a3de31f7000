package import LinuxSystem

extension FileFingerprint {
  /// The stamp as a record stores it: its XXH3-64, and that of the boot, under the record's salt;
  /// never 0.
  package func digest(bootID: String, salt: UInt64) -> UInt64 {
    var bytes: [UInt8] = []
    for number in [mount, device, inode] { bytes.append(littleEndian: number) }
    bytes.append(littleEndian: byteCount)
    for time in [modified, changed] {
      bytes.append(littleEndian: time.components.seconds)
      bytes.append(littleEndian: time.components.attoseconds)
    }
    bytes.append(contentsOf: bootID.utf8)
    return max(1, bytes.withUnsafeBytes { ContentHash.hash($0, seed: salt) })
  }
}
