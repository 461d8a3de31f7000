/// Reads and writes integers at fixed offsets, least significant byte first.
extension UnsafeRawBufferPointer {
  /// The integer at `offset`.
  ///
  /// The caller has checked the bounds.
  package func integer<Value: FixedWidthInteger>(at offset: Int, as type: Value.Type) -> Value {
    Value(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
  }
}

extension [UInt8] {
  /// Appends an integer.
  package mutating func append<Value: FixedWidthInteger>(littleEndian value: Value) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }
}

extension UInt64 {
  /// The value as 16 lower-case hexadecimal digits.
  package var hex16: String {
    let digits = String(self, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
