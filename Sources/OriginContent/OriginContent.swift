import Glibc

/// The test bytes of the origin: a pure function of (seed, version, offset).
///
/// Content of any size needs no disk, and a program can check the bytes it read without the file. A
/// misplaced byte identifies itself: ``offset(ofWord:seed:version:)`` finds the right offset of
/// eight bytes that were read at a wrong one.
///
/// Byte `i` is byte `i mod 8` (little endian) of word `i / 8`. Word `n` is `mix(key(seed, version)
/// + n × golden)` with the finaliser of SplitMix64. The words are counter-based, so any offset
/// costs the same.
package enum OriginContent {
  /// 2⁶⁴ / φ: the odd increment of SplitMix64.
  private static let golden: UInt64 = 0x9E37_79B9_7F4A_7C15
  private static let multiplier1: UInt64 = 0xBF58_476D_1CE4_E5B9
  private static let multiplier2: UInt64 = 0x94D0_49BB_1331_11EB

  /// Fills `buffer` with the bytes `offset ..< offset + buffer.count` of the content.
  ///
  /// - Parameters:
  ///   - buffer: may have any alignment and any length, including 0.
  ///   - seed: names the content.
  ///   - version: names its version; the bytes of two versions are unrelated.
  ///   - offset: the offset in bytes of the first byte; not negative.
  package static func fill(
    _ buffer: UnsafeMutableRawBufferPointer, seed: UInt64, version: UInt64, offset: Int64
  ) {
    precondition(offset >= 0, "offset is negative")
    guard let base = buffer.baseAddress, !buffer.isEmpty else { return }
    let key = streamKey(seed: seed, version: version)
    var counter = key &+ (UInt64(offset) >> 3) &* golden
    var position = 0

    // The rest of a word that begins before the buffer.
    let skipped = Int(offset & 7)
    if skipped != 0 {
      position = min(8 - skipped, buffer.count)
      store(mix(counter) >> UInt64(8 * skipped), byteCount: position, to: base)
      counter &+= golden
    }
    var remaining = (buffer.count - position) / 8
    while remaining > 0 {
      base.storeBytes(of: mix(counter).littleEndian, toByteOffset: position, as: UInt64.self)
      counter &+= golden
      position += 8
      remaining -= 1
    }
    store(mix(counter), byteCount: buffer.count - position, to: base + position)
  }

  /// The bytes `range` of the content, in a new array; see ``fill(_:seed:version:offset:)``.
  package static func bytes(seed: UInt64, version: UInt64 = 1, range: Range<Int64>) -> [UInt8] {
    let byteCount = Int(range.upperBound - range.lowerBound)
    return [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, initializedCount in
      fill(
        UnsafeMutableRawBufferPointer(buffer), seed: seed, version: version,
        offset: range.lowerBound)
      initializedCount = byteCount
    }
  }

  /// The index in `buffer` of the first byte that differs from the content at `offset + index`; nil
  /// if all are right.
  package static func firstMismatch(
    in buffer: UnsafeRawBufferPointer, seed: UInt64, version: UInt64 = 1, offset: Int64
  ) -> Int? {
    /// Small enough to stay in the second-level cache.
    let pieceByteCount = 64 << 10
    var expected = [UInt8](repeating: 0, count: min(pieceByteCount, buffer.count))
    var position = 0
    while position < buffer.count {
      let piece = UnsafeRawBufferPointer(
        rebasing: buffer[position..<min(position + pieceByteCount, buffer.count)])
      let mismatch = expected.withUnsafeMutableBytes { expected -> Int? in
        let expected = UnsafeMutableRawBufferPointer(rebasing: expected[..<piece.count])
        fill(expected, seed: seed, version: version, offset: offset + Int64(position))
        if let base = expected.baseAddress, let other = piece.baseAddress,
          memcmp(base, other, piece.count) == 0
        {
          return nil
        }
        return zip(expected, piece).enumerated().first { $0.element.0 != $0.element.1 }?.offset
      }
      if let mismatch { return position + mismatch }
      position += piece.count
    }
    return nil
  }

  /// The offset of a word in the first 8 PiB of the content, in bytes; nil if it is not there.
  ///
  /// The offset is a multiple of 8. Its eight bytes, read as a little-endian number, are `word`.
  package static func offset(ofWord word: UInt64, seed: UInt64, version: UInt64 = 1) -> Int64? {
    var value = word
    value = undoXorShift(value, 31) &* inverse(multiplier2)
    value = undoXorShift(value, 27) &* inverse(multiplier1)
    value = undoXorShift(value, 30)
    let index = (value &- streamKey(seed: seed, version: version)) &* inverse(golden)
    // Every word is somewhere in the cycle. A word of other content is this near with a chance of
    // 2⁻¹⁴.
    return index < 1 << 50 ? Int64(index) * 8 : nil
  }

  /// The seed of a name: FNV-1a (64 bits) of its UTF-8 bytes.
  package static func seed(ofName name: String) -> UInt64 {
    var hash = FNV1a()
    Array(name.utf8).withUnsafeBytes { hash.update($0) }
    return hash.value
  }

  /// The counter at word 0.
  ///
  /// Two keys are a random distance apart on one cycle of 2⁶⁴ words, so contents of real sizes do
  /// not overlap.
  private static func streamKey(seed: UInt64, version: UInt64) -> UInt64 {
    mix(mix(seed &+ golden) ^ (version &* multiplier1))
  }

  @inline(__always)
  private static func mix(_ counter: UInt64) -> UInt64 {
    var value = counter
    value = (value ^ (value >> 30)) &* multiplier1
    value = (value ^ (value >> 27)) &* multiplier2
    return value ^ (value >> 31)
  }

  /// Stores the `byteCount` (0...8) low bytes of `word`, lowest first.
  private static func store(_ word: UInt64, byteCount: Int, to address: UnsafeMutableRawPointer) {
    var rest = word
    for index in 0..<byteCount {
      address.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: index, as: UInt8.self)
      rest >>= 8
    }
  }

  /// The `x` for which `x ^ (x >> shift)` is `value`.
  private static func undoXorShift(_ value: UInt64, _ shift: UInt64) -> UInt64 {
    var result = value
    var known = shift
    // Each round corrects `shift` more of the high bits.
    while known < 64 {
      result = value ^ (result >> shift)
      known += shift
    }
    return result
  }

  /// The inverse of an odd number modulo 2⁶⁴, by Newton's iteration.
  private static func inverse(_ odd: UInt64) -> UInt64 {
    var inverse = odd  // Right in its lowest 3 bits; each round doubles them.
    for _ in 0..<5 { inverse = inverse &* (2 &- odd &* inverse) }
    return inverse
  }
}
