import MountControl
import SeededRandom
import Testing

/// `.control` accepts bytes from any program of its owner.
@Suite(.timeLimit(.minutes(10))) struct ControlFuzzTests {
  private let mutator = ByteMutator(
    dictionary: [
      "prefetch", "pause", "resume", "cancel", "evict", "pin", "unpin", "verify", "refresh",
      "connections", "rate-limit", " ", "\t", "\n", "\"", "\\", "\\\"", "*", "?", "[", "[!a-z]",
      "auto", "0", "1", "64", "65", "10M", "9223372036854775807", "-1", "\r", "\u{85}", "é",
      "e\u{301}", "\u{1F468}\u{200D}\u{1F469}", "a.bin", "d/é.iso",
    ].map { Array($0.utf8) } + [[0xFF], [0x00], [0xC3], [0xED, 0xA0, 0x80]])

  private let names = ["a.bin", "d/é.iso", "[x]", "a b", "\"", ""]

  private func batch(using generator: inout SeededGenerator) -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      let verb = generator.pick(FileVerb.allCases)
      let names = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
        generator.pick(["a.bin", "d/*", "*", "\"a b\"", "[a-f]?", "x\\ y"])
      }
      bytes += ([verb.rawValue] + names).joined(separator: " ").utf8
      bytes += "\n".utf8
    }
    if generator.isOnce(in: 4) { bytes += "connections \(generator.edgeNumber())\n".utf8 }
    if generator.isOnce(in: 4) { bytes += "rate-limit \(generator.edgeNumber())K\n".utf8 }
    return bytes
  }

  /// The violated rule of commands that were parsed from `bytes`; nil if there is none.
  private func brokenRule(_ commands: [ControlCommand], of bytes: [UInt8]) -> String? {
    let isText =
      String(validating: bytes, as: UTF8.self) != nil
      && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x0A || $0 == 0x09 }
    if !isText { return "bytes that are no text were taken" }
    let lineCount = bytes.split(separator: 0x0A).filter { line in
      line.contains { $0 != 0x20 && $0 != 0x09 }
    }.count
    if commands.count != lineCount { return "\(commands.count) commands of \(lineCount) lines" }
    for command in commands {
      switch command {
      case .files(let verb, let patterns):
        if patterns.isEmpty, !verb.mayLackNames { return "\(verb) without a name" }
        if patterns.contains(where: \.text.isEmpty) { return "an empty name" }
        // Every result is acceptable.
        for pattern in patterns { for name in names { _ = pattern.matches(name) } }
      case .connections(let count):
        if let count, !ControlCommand.connectionCounts.contains(count) { return "\(count)" }
      case .rateLimit(let rate, let patterns):
        if let rate, rate <= 0 { return "\(rate) bytes per second" }
        if patterns.contains(where: \.text.isEmpty) { return "an empty name" }
      }
    }
    return nil
  }

  @Test("Mutated commands are refused with a reason, or are what the lines say")
  func commands() {
    let campaign = FuzzCampaign(name: "control", count: 20_000)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.1) { generator in
      var bytes = batch(using: &generator)
      for _ in 0..<generator.pick([0, 1, 1, 2, 8]) {
        mutator.mutate(&bytes, using: &generator)
      }
      do throws(ControlRefusal) {
        let commands = try ControlParser.commands(bytes)
        if let rule = brokenRule(commands, of: bytes) { return .broken(rule) }
        return .accepted
      } catch {
        return error.errno > 0 && !error.description.isEmpty
          ? .refused : .broken("a refusal without a reason")
      }
    }
  }

  @Test("Random bytes are refused, nearly always")
  func garbage() {
    let campaign = FuzzCampaign(name: "control garbage", count: 10_000)
    campaign.run(minimumAccepted: 0, minimumRefused: 0.9) { generator in
      let bytes = (0..<Int.random(in: 1...600, using: &generator)).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      do throws(ControlRefusal) {
        let commands = try ControlParser.commands(bytes)
        if let rule = brokenRule(commands, of: bytes) { return .broken(rule) }
        return .accepted
      } catch {
        return .refused
      }
    }
  }

  @Test("However a stream of commands is cut into writes, only whole lines of it are taken")
  func cutStreams() {
    let campaign = FuzzCampaign(name: "control cuts", count: 10_000)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.1) { generator in
      var stream: [UInt8] = []
      let size = generator.pick([1, 20, 200, 5000])
      while stream.count < size { stream += batch(using: &generator) }
      let lines = Set(stream.split(separator: 0x0A).map(Array.init))
      var writer = ControlWriter()
      var rest = stream[...]
      var start = 0
      var isRefused = false
      while !rest.isEmpty {
        let most = generator.pick([1, 50, 4096, 8192, 20_000, 40_000])
        let piece = Array(rest.prefix(Int.random(in: 1...most, using: &generator)))
        rest = rest.dropFirst(piece.count)
        // If a piece begins within a line, none of it may be accepted.
        let isInside = start > 0 && stream[start - 1] != 0x0A
        start += piece.count
        do throws(ControlRefusal) {
          _ = try writer.take(piece)
          if isInside { return .broken("a piece from within a line was taken") }
          if isRefused, piece.count > 4096 { return .broken("\(piece.count) bytes were taken") }
          // The exception is a single line, which may be a command.
          let taken = piece.split(separator: 0x0A).map(Array.init)
          if piece.contains(0x0A), !taken.allSatisfy(lines.contains) {
            return .broken("half a line")
          }
        } catch {
          isRefused = true
        }
      }
      return isRefused ? .refused : .accepted
    }
  }
}
