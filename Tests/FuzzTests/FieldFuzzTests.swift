import Glibc
import HTTPTransferCore
import SeededRandom
import SourceList
import Testing

/// Fields of responses, one at a time: the parsed value matches the field.
@Suite(.timeLimit(.minutes(10))) struct FieldFuzzTests {
  private func mutated(
    _ text: String, using generator: inout SeededGenerator, most: Int = 3
  ) -> String {
    String(decoding: mutatedBytes(text, using: &generator, most: most), as: UTF8.self)
  }

  private func mutatedBytes(
    _ text: String, using generator: inout SeededGenerator, most: Int = 3
  ) -> [UInt8] {
    var bytes = Array(text.utf8)
    for _ in 0..<Int.random(in: 0...most, using: &generator) {
      HeadFuzzTests.mutator.mutate(&bytes, using: &generator)
    }
    return bytes
  }

  @Test("A date that is taken is the one that the C library reads")
  func dates() {
    let names = [
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    let campaign = FuzzCampaign(name: "dates", count: 100_000)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.1) { generator in
      func two(_ range: ClosedRange<Int>) -> String {
        let number = Int.random(in: range, using: &generator)
        return number < 10 ? "0\(number)" : "\(number)"
      }
      let year = generator.pick([1600, 1601, 1900, 1970, 2000, 2038, 2100, 2400, 9999, 10_000])
      let text = mutated(
        "Sun, \(two(0...32)) \(generator.pick(names)) \(year) \(two(0...24)):\(two(0...60)):\(two(0...61)) GMT",
        using: &generator, most: 1)
      guard let seconds = HTTPDate.secondsSince1970(text) else { return .refused }
      let words = text.split(separator: " ")
      let clock = words[4].split(separator: ":").compactMap { Int32($0) }
      guard words.count == 6, clock.count == 3, let day = Int32(words[1]),
        let year = Int32(words[3]),
        let month = names.firstIndex(of: String(words[2]))
      else { return .broken("taken: \(text.debugDescription)") }
      var parts = tm()
      parts.tm_year = year - 1900
      parts.tm_mon = Int32(month)
      parts.tm_mday = day
      (parts.tm_hour, parts.tm_min, parts.tm_sec) = (clock[0], clock[1], clock[2])
      let expected = Int64(timegm(&parts))
      // `timegm` moves a day that the month does not have into the next month.
      guard seconds == expected, parts.tm_mday == day || clock[2] == 60 else {
        return .broken("\(text.debugDescription) is \(seconds), not \(expected)")
      }
      return .accepted
    }
  }

  @Test("A file name that a server suggests is safe in every directory")
  func suggestedNames() {
    let campaign = FuzzCampaign(name: "suggested names", count: 100_000)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.01) { generator in
      let field = mutatedBytes(
        generator.pick([
          "attachment; filename=a.bin", "inline; filename=\"../..\\\\a\\\" b.bin\"; x=y",
          "attachment; filename*=UTF-8''%e2%80%ae%2F.%2e%2F-a%20%01.pdf; filename=.b",
          "attachment; filename*=iso-8859-1'en'%e9%9b.pdf", "filename=\".\u{202E}\u{2028}a\"",
          "attachment; filename=\"..\"", "attachment; filename",
        ]),
        using: &generator, most: 6)
      guard let text = ContentDisposition(field: field).fileName,
        let name = SuggestedName.safe(text)
      else { return .refused }
      let isSafe =
        EntryName.isAllowed(name, atRoot: true)
        && name.utf8.first != UInt8(ascii: ".") && name.utf8.first != UInt8(ascii: "-")
        && !name.unicodeScalars.contains { $0.properties.isBidiControl || $0 == "\\" }
      return isSafe ? .accepted : .broken("\(field) is \(name.debugDescription)")
    }
  }

  @Test("An entity tag is sent back as one that reads the same")
  func entityTags() {
    let campaign = FuzzCampaign(name: "entity tags", count: 100_000)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.1) { generator in
      let field = mutatedBytes(
        generator.pick([
          "\"v1\"", "W/\"v1\"", "v1", "W/v1", "\"W/v1\"", "\"é\"", " \"x-gzip\"\t", "\"",
        ]),
        using: &generator)
      guard let tag = EntityTag(field: field) else { return .refused }
      if tag.bytes.isEmpty || tag.bytes.contains(where: { $0 <= 0x20 || $0 == 0x22 }) {
        return .broken("\(field) is \(tag)")
      }
      // The text that is returned to a server must not end its line, and must name the same version
      // exactly.
      guard field.firstRange(of: tag.bytes) != nil else { return .broken("\(field) is \(tag)") }
      return EntityTag(field: tag.fieldBytes) == tag
        ? .accepted : .broken("\(field) is \(tag), sent as \(tag.fieldBytes)")
    }
  }

  @Test("A range that is read lies below the length that it names")
  func contentRanges() {
    let campaign = FuzzCampaign(name: "content ranges", count: 100_000)
    campaign.run(minimumAccepted: 0.05, minimumRefused: 0.1) { generator in
      let (first, last) = (generator.edgeNumber(), generator.edgeNumber())
      let length = generator.isOnce(in: 3) ? "*" : "\(generator.edgeNumber())"
      let text = mutated("bytes \(first)-\(last)/\(length)", using: &generator, most: 2)
      guard let field = ContentRange(field: text) else { return .refused }
      if let length = field.completeLength, !(0...(1 << 60)).contains(length) {
        return .broken("\(text.debugDescription): length \(length)")
      }
      guard let range = field.range else {
        return field.completeLength == nil ? .broken("says nothing: \(text)") : .accepted
      }
      guard range.lowerBound >= 0, !range.isEmpty,
        range.upperBound <= field.completeLength ?? 1 << 60
      else { return .broken("\(text.debugDescription): \(range)") }
      // The same range in its plainest form gives the same result.
      let plain =
        "bytes \(range.lowerBound)-\(range.upperBound - 1)/"
        + (field.completeLength.map { "\($0)" } ?? "*")
      return ContentRange(field: plain) == field ? .accepted : .broken("\(text) against \(plain)")
    }
  }

  @Test("Two versions are the same only where nothing says otherwise and something says so")
  func versions() {
    let campaign = FuzzCampaign(name: "versions", count: 100_000)
    campaign.run(minimumAccepted: 0.02, minimumRefused: 0.2) { generator in
      let pinned = version(using: &generator)
      let response = version(using: &generator)
      let expected = Self.comparison(pinned, response)
      let comparison = pinned.compare(response)
      guard comparison == expected else {
        return .broken("\(pinned) against \(response): \(comparison), not \(expected)")
      }
      if pinned.hasSameIdentity(as: response), comparison == .different {
        return .broken("\(pinned) is recorded as \(response), which compares \(comparison)")
      }
      guard pinned.compare(pinned) != .different else { return .broken("\(pinned) is not itself") }
      return comparison == .same ? .accepted : .refused
    }
  }

  private func version(using generator: inout SeededGenerator) -> ContentVersion {
    var version = ContentVersion(
      entityTag: generator.pick([
        nil, EntityTag(opaque: "a"), EntityTag(opaque: "a", isWeak: true), EntityTag(opaque: "b"),
        EntityTag(opaque: "b", isWeak: true),
      ]),
      lastModified: generator.pick([nil, "Sun, 06 Nov 1994 08:49:37 GMT", "yesterday"]),
      completeLength: generator.pick([nil, 0, 1000]),
      contentCoding: generator.pick([nil, nil, nil, "gzip"]))
    if version.lastModified != nil {
      version.dateStrength = generator.pick([.undated, .undated, .strong, .weak])
    }
    return version
  }

  /// The table of docs/SEMANTICS.md, "What makes two versions the same".
  private static func comparison(
    _ pinned: ContentVersion, _ response: ContentVersion
  ) -> ContentVersion.Comparison {
    if pinned.contentCoding != response.contentCoding { return .different }
    if let one = pinned.completeLength, let other = response.completeLength, one != other {
      return .different
    }
    let dates = [pinned.lastModified, response.lastModified].compactMap { $0 }
    let datesDiffer = dates.count == 2 && dates[0] != dates[1]
    if let one = pinned.entityTag, let other = response.entityTag {
      if one.bytes != other.bytes { return .different }
      if (one.isWeak || other.isWeak) && datesDiffer { return .different }
      // A strong tag has become weak: only the dates can prove equality.
      let isProven = dates.count == 2 && pinned.dateStrength != .weak
      return !one.isWeak && other.isWeak && !isProven ? .unknown : .same
    }
    if datesDiffer { return .different }
    // Only one of the two has the tag, and only one has the date.
    if pinned.entityTag == nil, pinned.lastModified == nil {
      return response.entityTag == nil && response.lastModified == nil ? .same : .different
    }
    // The bytes may have changed within the second of the response, so its date proves nothing.
    let isProof = pinned.entityTag == nil && dates.count == 2 && pinned.dateStrength != .weak
    return isProof ? .same : .unknown
  }
}
