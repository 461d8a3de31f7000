import SeededRandom
import TransferDisplay

let mebibyte: Int64 = 1 << 20
let gibibyte: Int64 = 1 << 30

/// The download of the examples: 440 MiB of 1 GiB.
let bigFile = DisplayItem(
  id: 1, name: "big.iso", url: "http://example.com/big.iso", state: .running,
  transferredByteCount: 440 * mebibyte, totalByteCount: gibibyte,
  bytesPerSecond: 98.2 * Double(mebibyte), timeLeft: 6, elapsed: 4.5, connections: 16)

extension DisplayItem {
  /// A copy of the item with a change.
  func with(_ change: (inout DisplayItem) -> Void) -> DisplayItem {
    var item = self
    change(&item)
    return item
  }

  /// An item with every text that could disturb a display.
  static func random(id: Int, using random: inout SeededGenerator) -> DisplayItem {
    let counts: [Int64] = [0, 1, 999, 1023, 1024, 43 * mebibyte, gibibyte, 1 << 50, .max]
    func count(_ random: inout SeededGenerator) -> Int64 {
      counts.randomElement(using: &random) ?? 0
    }
    let speeds = [0, 0.4, 1e3, 1.0737e9, 1e30, .infinity, .nan, -1]
    let times: [Double?] = [nil, 0, 5.5, 65, 4e3, 1e6, .infinity, .nan, -3]
    return DisplayItem(
      id: id, name: text(using: &random), url: "http://example.com/" + text(using: &random),
      state: state(using: &random), transferredByteCount: count(&random),
      resumedByteCount: count(&random),
      totalByteCount: Bool.random(using: &random) ? count(&random) : nil,
      bytesPerSecond: speeds.randomElement(using: &random) ?? 0,
      timeLeft: times.randomElement(using: &random) ?? nil,
      elapsed: .random(in: 0...1e5, using: &random),
      connections: .random(in: 0...64, using: &random))
  }

  private static func state(using random: inout SeededGenerator) -> State {
    let states: [State] = [
      .queued, .connecting, .running, .running, .running, .waiting(reason: text(using: &random)),
      .paused, .finished, .failed(text(using: &random)), .cancelled,
    ]
    return states.randomElement(using: &random) ?? .queued
  }

  private static func text(using random: inout SeededGenerator) -> String {
    let pieces = [
      "a", "b.iso", " ", "文件", "カナ", "한글", "é", "e\u{301}\u{302}", "🎉", "👨‍👩‍👧", "🇩🇪", "❤️", "1️⃣",
      "👍🏽", "\n", "\r\n", "\t", "\u{1B}[31m", "\u{1B}[2J", "\u{7F}", "\u{9B}1A", "\u{202E}",
      "\u{200B}", "\u{301}", "\u{FE0F}", "\u{200D}", "\u{2028}", "\u{0}", "ᄒ\u{1161}\u{11AB}",
      "ｆｕｌｌ",
      String(repeating: "long", count: 60),
    ]
    let count = Int.random(in: 0...8, using: &random)
    return (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
  }
}

extension DisplaySnapshot {
  /// A snapshot of no, one or several random items.
  static func random(using random: inout SeededGenerator) -> DisplaySnapshot {
    let items = (0..<Int.random(in: 0...12, using: &random)).map {
      DisplayItem.random(id: $0, using: &random)
    }
    return DisplaySnapshot(items: items, elapsed: .random(in: 0...1e4, using: &random))
  }
}

/// Whether a terminal would show the text unchanged, in one line.
func isPlain(_ text: String) -> Bool {
  text.unicodeScalars.allSatisfy {
    $0.properties.generalCategory != .control && !$0.properties.isBidiControl
      && $0 != "\u{2028}" && $0 != "\u{2029}"
  }
}
