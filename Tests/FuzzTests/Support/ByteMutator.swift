import SeededRandom

/// Changes bytes like damage, a careless program or an attacker.
struct ByteMutator {
  /// Byte strings with a meaning in the format under test, which are inserted more often than by
  /// chance.
  let dictionary: [[UInt8]]

  /// Changes `bytes` once, unless they are empty.
  func mutate(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
    guard !bytes.isEmpty else { return }
    let start = Int.random(in: 0..<bytes.count, using: &generator)
    let end = min(bytes.count, start + Int.random(in: 1...32, using: &generator))
    switch Int.random(in: 0..<9, using: &generator) {
    case 0: bytes[start] = UInt8.random(in: 0...255, using: &generator)
    case 1: bytes[start] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
    case 2: bytes.removeSubrange(start..<end)
    case 3: bytes.insert(contentsOf: Array(bytes[start..<end]), at: end)
    case 4: bytes.removeSubrange(start...)
    case 5, 6:
      guard let word = dictionary.randomElement(using: &generator) else { return }
      bytes.insert(contentsOf: word, at: start)
    case 7:
      guard let word = dictionary.randomElement(using: &generator) else { return }
      bytes.replaceSubrange(start..<end, with: word)
    default:
      // A piece from elsewhere in the same input.
      let from = Int.random(in: 0..<bytes.count, using: &generator)
      let piece = Array(bytes[from..<min(bytes.count, from + (end - start))])
      bytes.replaceSubrange(start..<end, with: piece)
    }
  }
}

extension SeededGenerator {
  /// Whether an event that happens once in `count` times happens now.
  mutating func isOnce(in count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

  /// One of `choices`, which must not be empty.
  mutating func pick<Element>(_ choices: [Element]) -> Element {
    choices[Int.random(in: 0..<choices.count, using: &self)]
  }

  /// A number that is often a limit of a range, for fields with counts.
  mutating func edgeNumber() -> Int64 {
    let edges: [Int64] = [
      0, 1, 2, 9, 10, 99, 100, 255, 256, 499, 500, 999, 1000, 1 << 31, (1 << 32) - 1, 1 << 32,
      (1 << 60) - 1, 1 << 60, (1 << 60) + 1, .max - 1, .max, -1, .min,
    ]
    switch Int.random(in: 0..<4, using: &self) {
    case 0: return pick(edges)
    case 1: return pick(edges) &+ Int64.random(in: -2...2, using: &self)
    default: return Int64.random(in: 0...2000, using: &self)
    }
  }
}
