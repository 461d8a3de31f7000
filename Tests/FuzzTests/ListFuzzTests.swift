import SeededRandom
import SourceList
import Testing

/// A list is either refused, or every entry of it obeys the rules of the format.
@Suite(.timeLimit(.minutes(10))) struct ListFuzzTests {
  private let mutator = ByteMutator(
    dictionary: [
      "\n", "\r\n", "\r", "\t", " ", "#", "\n ", "\n  out=", "\n  dir=", "\n  header=", "out=", "=",
      "/", "//", "../", "/..", "./", "%2F", "%00", "%2E%2E", "%C2%80", "%", "?", "@", ":", "[::1]",
      "\u{FEFF}", "\u{85}", "\u{2028}", "é", "e\u{301}", "http://", "https://h/", ".status",
      ".status.json", ".control", "\0", "\u{7F}", "\u{1B}[2J", "checksum=md5=", "a",
      "header=A: b\r\nC: d", "99999999999999999999",
    ].map { Array($0.utf8) } + [
      [0xFF], [0xC2], [0xED, 0xA0, 0x80], [0xFF, 0xFE], [0x1F, 0x8B], [0xF0, 0x9F],
    ])

  @Test("Of 100,000 mutated lists, what is accepted obeys every rule")
  func lists() {
    let campaign = FuzzCampaign(name: "lists", count: 100_000)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.2) { generator in
      var bytes = ListGrammar.list(using: &generator)
      let mutationCount = generator.pick([0, 0, 0, 1, 1, 2, 3, 5])
      for _ in 0..<mutationCount { mutator.mutate(&bytes, using: &generator) }
      let tree = generator.isOnce(in: 3)
      let rules: PathRules = generator.isOnce(in: 8) ? .local : .mount
      let oracle = ListOracle(bytes: bytes, rules: rules)
      do {
        let list = try SourceListReader.parse(bytes, sourceName: "list", tree: tree, rules: rules)
        if let rule = oracle.rule(brokenBy: list) { return .broken(rule + Self.shown(bytes)) }
        if mutationCount == 0, "\(list.warnings)".contains(ListGrammar.secret) {
          return .broken("a warning shows a secret: \(list.warnings)" + Self.shown(bytes))
        }
        if !oracle.isCompressed, generator.isOnce(in: 4) {
          let pieces = try parsedInPieces(bytes, tree: tree, rules: rules, using: &generator)
          if pieces != list { return .broken("differs when read in pieces" + Self.shown(bytes)) }
        }
        return .accepted
      } catch let error as SourceListError {
        if let rule = oracle.rule(brokenBy: error) { return .broken(rule + Self.shown(bytes)) }
        if mutationCount == 0, error.description.contains(ListGrammar.secret) {
          return .broken("an error shows a secret: \(error)" + Self.shown(bytes))
        }
        return .refused
      }
    }
  }

  @Test("Of 10,000 mutated gzip lists, what is accepted says what was compressed")
  func compressedLists() {
    let campaign = FuzzCampaign(name: "compressed lists", count: 10_000)
    campaign.run(minimumAccepted: 0.02, minimumRefused: 0.2) { generator in
      let plain = ListGrammar.list(using: &generator, isHarmless: true)
      var bytes = StoredGzip.data(plain)
      for _ in 0..<generator.pick([0, 1, 1, 1, 2, 4]) {
        mutator.mutate(&bytes, using: &generator)
      }
      guard bytes.starts(with: [0x1F, 0x8B]) else {
        _ = try? SourceListReader.parse(bytes, sourceName: "list")
        return .refused
      }
      guard let list = try? SourceListReader.parse(bytes, sourceName: "list") else {
        return .refused
      }
      // The checksum in the member's trailer was right, so the text was right.
      let expected = try SourceListReader.parse(plain, sourceName: "list")
      return list == expected ? .accepted : .broken("another list than the one compressed")
    }
  }

  @Test("Random bytes are never a list of files that breaks the rules")
  func randomBytes() {
    let campaign = FuzzCampaign(name: "random bytes", count: 10_000)
    campaign.run(minimumAccepted: 0, minimumRefused: 0.9) { generator in
      let bytes = (0..<Int.random(in: 0...300, using: &generator)).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      do {
        let list = try SourceListReader.parse(bytes, sourceName: "list")
        let oracle = ListOracle(bytes: bytes, rules: .mount)
        return oracle.rule(brokenBy: list).map { .broken($0 + Self.shown(bytes)) } ?? .accepted
      } catch is SourceListError {
        return .refused
      }
    }
  }

  private func parsedInPieces(
    _ bytes: [UInt8], tree: Bool, rules: PathRules, using generator: inout SeededGenerator
  ) throws -> SourceList {
    var parser = SourceListParser(sourceName: "list", tree: tree, rules: rules)
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + Int.random(in: 1...40, using: &generator))
      parser.consume(bytes[start..<end])
      start = end
    }
    return try parser.finish()
  }

  /// The input, for a report.
  private static func shown(_ bytes: [UInt8]) -> String {
    "\n\(String(decoding: bytes.prefix(2000), as: UTF8.self).debugDescription)"
  }
}
