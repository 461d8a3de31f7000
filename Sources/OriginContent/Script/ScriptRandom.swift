/// The random numbers of one request.
///
/// They depend only on the script's seed, the rule, the resource and the number of the request.
package struct ScriptRandom: Equatable, Sendable {
  /// 2⁶⁴ / φ: the odd increment of SplitMix64.
  private static let golden: UInt64 = 0x9E37_79B9_7F4A_7C15

  private var state: UInt64

  init(seed: UInt64, rule: String, target: String, requestNumber: Int64) {
    var hash = FNV1a()
    // The separator is a byte that neither a name nor a target contains.
    Array("\(rule)\0\(target)".utf8).withUnsafeBytes { hash.update($0) }
    state = Self.mix(seed &+ Self.golden) ^ Self.mix(hash.value)
    state = Self.mix(state ^ UInt64(bitPattern: requestNumber) &* Self.golden)
  }

  /// The next number in a range.
  mutating func number(in range: ClosedRange<Int64>) -> Int64 {
    let word = next()
    let count = UInt64(bitPattern: range.upperBound &- range.lowerBound) &+ 1
    // A count of 2⁶⁴ wraps to 0: every word is in the range then.
    guard count != 0 else { return Int64(bitPattern: word) }
    return range.lowerBound &+ Int64(bitPattern: word.multipliedFullWidth(by: count).high)
  }

  /// Whether an event of this probability happens now.
  mutating func happens(withProbability probability: Double) -> Bool {
    // The 53 high bits are a fraction from 0 to below 1.
    Double(next() >> 11) * 0x1p-53 < probability
  }

  private mutating func next() -> UInt64 {
    state &+= Self.golden
    return Self.mix(state)
  }

  private static func mix(_ word: UInt64) -> UInt64 {
    var word = word
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }
}
