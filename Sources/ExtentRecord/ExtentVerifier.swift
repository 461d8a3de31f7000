package import LinuxSystem

/// Compares stored bytes with the hash that their record claims.
package struct ExtentVerifier {
  private let data: Descriptor
  /// Whether ``data`` was opened with `O_DIRECT`.
  private let isDirect: Bool
  /// Allocated when needed: most entries open without any extent to verify.
  private var buffer: [UInt8] = []
  private static let bufferByteCount = 256 << 10

  package init(data: Descriptor) {
    self.data = data
    isDirect = false
  }

  /// - Parameter direct: the data file, opened with `O_DIRECT`.
  init(direct: Descriptor) {
    data = direct
    isDirect = true
  }

  /// Whether the bytes `offset ..< offset + byteCount` can be read and have the hash `contentHash`.
  package mutating func matches(offset: Int64, byteCount: Int64, contentHash: UInt64) -> Bool {
    if buffer.isEmpty { buffer = [UInt8](repeating: 0, count: Self.bufferByteCount) }
    var hash = StreamingHash()
    var done: Int64 = 0
    while done < byteCount {
      let wanted = Int(min(Int64(buffer.count), byteCount - done))
      let isRead = buffer.withUnsafeMutableBytes { bytes in
        let piece = UnsafeMutableRawBufferPointer(rebasing: bytes[..<wanted])
        // Bytes that the disk cannot read count as absent: the caller fetches them again.
        guard
          (try? isDirect
            ? SystemCalls.readDirectly(data.rawValue, into: piece, at: offset + done)
            : SystemCalls.read(data.rawValue, into: piece, at: offset + done)) == wanted
        else { return false }
        hash.update(UnsafeRawBufferPointer(piece))
        return true
      }
      guard isRead else { return false }
      done += Int64(wanted)
    }
    return hash.value == contentHash
  }
}
