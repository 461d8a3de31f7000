import HTTPTransferCore
import SeededRandom
import SourceList
import Testing

/// Metalinks come from untrusted servers: they are refused, or every entry obeys the rules.
@Suite(.timeLimit(.minutes(10))) struct MetalinkFuzzTests {
  private let mutator = ByteMutator(
    dictionary: [
      "<", ">", "</", "/>", "<!--", "-->", "<![CDATA[", "]]>", "<?xml ", "?>", "<!DOCTYPE m [",
      "<!ENTITY a \"b\">", "<!ENTITY % p SYSTEM \"file:///etc/passwd\">", "&a;", "&amp;", "&lt;",
      "&#0;", "&#x2f;", "&#10;", "&", "\"", "'", "=", "xmlns=\"\"", "xmlns:a=\"b\"", "a:", " ",
      "name=\"", "name=\"../\"", "<file name=\"x\">", "</file>", "<url>", "</url>",
      "<url priority=\"",
      "http://h/", "ftp://h/", "<size>", "</size>", "18446744073709551616", "-1", "0",
      "<hash type=\"sha-256\">", "<pieces length=\"", "<hash>", "</hash>", "type=\"md5\"",
      "piece=\"7\"", "..", "/", ".status", "\u{0}", "\u{85}", "é", "e\u{301}", "\n",
      "encoding=\"UTF-16\"", "<metalink>", "</metalink>", "<files>", "</files>",
    ].map { Array($0.utf8) } + [[0xFF], [0xC2], [0xFE, 0xFF], [0xFF, 0xFE], [0x1F, 0x8B]])

  @Test("A mutated Metalink is refused, or its entries obey every rule")
  func metalinks() {
    let campaign = FuzzCampaign(name: "metalinks", count: 20_000)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.3) { generator in
      var bytes = Array(document(using: &generator).utf8)
      for _ in 0..<generator.pick([0, 0, 1, 1, 2, 4, 8]) {
        mutator.mutate(&bytes, using: &generator)
      }
      let input = generator.isOnce(in: 8) ? StoredGzip.data(bytes) : bytes
      do {
        let list = try SourceListReader.parse(input, sourceName: "list")
        for entry in list.entries {
          if let rule = rule(brokenBy: entry) {
            return .broken("\(rule): \(String(decoding: bytes, as: UTF8.self).debugDescription)")
          }
        }
        return Set(list.entries.map { PathKey($0.path) }).count == list.entries.count
          ? .accepted : .broken("a name twice")
      } catch let error as SourceListError {
        let isTold =
          !error.diagnostics.isEmpty
          && error.diagnostics.allSatisfy {
            !$0.message.isEmpty
              && $0.message.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
          }
        return isTold ? .refused : .broken("an error that says nothing, or more than a line")
      }
    }
  }

  private func document(using generator: inout SeededGenerator) -> String {
    let isFour = generator.isOnce(in: 2)
    var text = generator.pick([
      "", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", "\u{FEFF}", "\n",
    ])
    text +=
      isFour
      ? "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">"
      : "<metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\"><files>"
    for index in 0..<Int.random(in: 1...4, using: &generator) {
      text += "<file name=\"\(generator.pick(["a", "d/b", "c c", "ü"]))\(index)\">\n"
      text += generator.pick(["", "<size>10</size>", "<identity>x</identity><!-- c -->"])
      text += isFour ? "" : "<verification>"
      text += generator.pick([
        "", "<hash type=\"md5\">d41d8cd98f00b204e9800998ecf8427e</hash>",
        "<hash type=\"tiger\">x</hash>",
      ])
      if generator.isOnce(in: 2) {
        let count = Int.random(in: 1...3, using: &generator)
        text += "<pieces length=\"\(generator.pick([4, 5, 10]))\" type=\"md5\">"
        for piece in 0..<count {
          text += isFour ? "<hash>" : "<hash piece=\"\(piece)\">"
          text += "d41d8cd98f00b204e9800998ecf8427e</hash>"
        }
        text += "</pieces>"
      }
      text += isFour ? "" : "</verification><resources>"
      for mirror in 0..<Int.random(in: 1...3, using: &generator) {
        let attribute =
          isFour ? "priority=\"\(mirror)\"" : "type=\"http\" preference=\"\(100 - mirror)\""
        text += "<url \(attribute)>http://h\(mirror)/x?a=1&amp;b=2</url>"
      }
      text += generator.pick([
        "", isFour ? "<url>ftp://h/x</url>" : "<url type=\"ftp\">ftp://h</url>",
      ])
      text += (isFour ? "" : "</resources>") + "</file>\n"
    }
    return text + (isFour ? "" : "</files>") + "</metalink>\n"
  }

  /// The rules, in an independent and simple form.
  private func rule(brokenBy entry: SourceEntry) -> String? {
    let segments = entry.path.split(separator: "/", omittingEmptySubsequences: false)
    if segments.contains(where: { ["", ".", ".."].contains($0) || $0.utf8.count > 255 }) {
      return "a bad name"
    }
    let hasControl = entry.path.unicodeScalars.contains {
      $0.value < 0x20 || (0x7F...0x9F).contains($0.value)
    }
    if hasControl { return "a control character" }
    if [".status", ".status.json", ".control", ".metrics"].contains(segments.first) {
      return "a name of the mount's own"
    }
    for url in [entry.url] + entry.mirrors where !["http", "https"].contains(url.scheme) {
      return "a scheme that is not read"
    }
    if Set([entry.url] + entry.mirrors).count != 1 + entry.mirrors.count { return "a URL twice" }
    if let length = entry.length, length < 0 { return "a negative length" }
    if let pieces = entry.pieces {
      if pieces.pieceByteCount <= 0 { return "pieces without length" }
      if let length = entry.length, !pieces.covers(length: length) {
        return "pieces that do not fit"
      }
      if pieces.digests.contains(where: { $0.count != pieces.algorithm.digestByteCount }) {
        return "a digest of another length"
      }
    }
    if entry.isListing { return "a listing" }
    return nil
  }
}
