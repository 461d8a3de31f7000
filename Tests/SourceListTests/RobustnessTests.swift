import CZlib
import HTTPTransferCore
import SeededRandom
import SourceList
import Testing

@Suite struct RobustnessTests {
  private static let seed = """
    \u{FEFF}# a list
    http://user:pass@example.org:8080/d/a%20b.bin?k=v\thttps://mirror.example/x
      out=d/e.bin
      header=Cookie: k=v
      checksum=md5=d41d8cd98f00b204e9800998ecf8427e
    https://[::1]:443/%C3%A9\r
    \tdir=d
     user-agent=x
    http://h/c

    """

  /// Bytes with a meaning for the parser, which occur more often than by chance.
  private static let hotBytes: [UInt8] = Array("\n\r\t #=:/%@?.[]\\".utf8) + [0, 0xFF, 0xC2, 0x80]

  @Test func mutatedListsNeverTrapAndAcceptedOnesObeyTheRules() throws {
    var generator = SeededGenerator(seed: 1)
    var acceptedCount = 0
    for _ in 0..<10_000 {
      var bytes = Array(Self.seed.utf8)
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let place = Int.random(in: 0..<bytes.count, using: &generator)
        let byte =
          Bool.random(using: &generator)
          ? Self.hotBytes[Int.random(in: 0..<Self.hotBytes.count, using: &generator)]
          : UInt8.random(in: 0...255, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes[place] = byte
        case 1: bytes.insert(byte, at: place)
        case 2: bytes.remove(at: place)
        default: bytes.removeSubrange(place..<min(bytes.count, place + 20))
        }
        if bytes.isEmpty { break }
      }
      guard
        let list = try? SourceListReader.parse(
          bytes, sourceName: "x", tree: Bool.random(using: &generator))
      else { continue }
      acceptedCount += 1
      #expect(Set(list.entries.map { PathKey($0.path) }).count == list.entries.count)
      for entry in list.entries {
        for segment in entry.path.split(separator: "/", omittingEmptySubsequences: false) {
          #expect((1...255).contains(segment.utf8.count) && segment != "." && segment != "..")
        }
        #expect(entry.path.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
        for field in entry.headers {
          #expect(field.value.utf8.allSatisfy { ($0 >= 0x20 || $0 == 9) && $0 != 0x7F })
        }
      }
    }
    // Otherwise the rules above check nothing.
    #expect(acceptedCount > 1000)
  }

  @Test func aListReadInPiecesOfAnySizeIsTheSame() throws {
    let bytes = Array(Self.seed.utf8)
    let whole = try SourceListReader.parse(bytes, sourceName: "x")
    for pieceByteCount in 1...bytes.count {
      var parser = SourceListParser(sourceName: "x", tree: false)
      for start in stride(from: 0, to: bytes.count, by: pieceByteCount) {
        parser.consume(bytes[start..<min(bytes.count, start + pieceByteCount)])
      }
      #expect(try parser.finish() == whole)
    }
  }

  // MARK: gzip

  @Test func aCompressedListIsInflatedAcrossItsMembers() throws {
    // The lines are cut in the middle, and the list is longer than one piece of the inflater.
    let text = Array((0..<20_000).map { "http://example.org/d/file-\($0).bin\n" }.joined().utf8)
    let cut = text.count / 3
    let members = gzip(Array(text[..<cut])) + gzip([]) + gzip(Array(text[cut...]))
    let list = try SourceListReader.parse(members + [0, 0, 0], sourceName: "x")
    #expect(list.entries.count == 20_000)
    #expect(list.entries.last?.path == "file-19999.bin")
    #expect(list.entries.last?.line == 20_000)
  }

  @Test func damagedAndTruncatedGzipIsAnErrorOfTheList() {
    let good = gzip(Array("http://h/a\nhttp://h/b\n".utf8))
    var damaged = good
    damaged[good.count - 6] ^= 0xFF
    for (bytes, message) in [
      (damaged, "damaged"), (Array(good.dropLast(9)), "too early"),
      (Array(good.prefix(2)), "too early"), (good + good.prefix(5), "too early"),
    ] {
      #expect {
        try SourceListReader.parse(bytes, sourceName: "x")
      } throws: { error in
        "\(error)".hasPrefix("x: the gzip data") && "\(error)".contains(message)
      }
    }
  }

  @Test func mutatedGzipNeverTraps() {
    var generator = SeededGenerator(seed: 2)
    let good = gzip(Array(Self.seed.utf8))
    for _ in 0..<2_000 {
      var bytes = good
      for _ in 0..<3 {
        bytes[Int.random(in: 2..<bytes.count, using: &generator)] =
          UInt8.random(in: 0...255, using: &generator)
      }
      _ = try? SourceListReader.parse(bytes, sourceName: "x")
    }
  }

  @Test func aGzipBombStopsAtTheCap() {
    let bomb = gzip([UInt8](repeating: 0x61, count: 4 << 20))
    var received = 0
    #expect(throws: GzipInflater.Failure.tooLong(maximumByteCount: 1 << 20)) {
      try GzipInflater.inflate(bomb, maximumByteCount: 1 << 20) { chunk in
        received += chunk.count
        return true
      }
    }
    #expect(received <= 1 << 20)
  }
}

/// `bytes`, compressed by zlib.
func gzip(_ bytes: [UInt8]) -> [UInt8] {
  var stream = z_stream()
  // 15 + 16: the largest window, a gzip head.
  guard
    deflateInit2_(
      &stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size)) == Z_OK
  else { return [] }
  defer { deflateEnd(&stream) }
  var source = bytes
  var target = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(bytes.count))))
  let count = source.withUnsafeMutableBufferPointer { source in
    target.withUnsafeMutableBufferPointer { target in
      stream.next_in = source.baseAddress
      stream.avail_in = UInt32(source.count)
      stream.next_out = target.baseAddress
      stream.avail_out = UInt32(target.count)
      _ = deflate(&stream, Z_FINISH)
      return target.count - Int(stream.avail_out)
    }
  }
  return Array(target[..<count])
}
