/// A Metalink of one file of the Origin's content.
struct MetalinkDocument {
  var name = "a.bin"
  let seed: UInt64
  let byteCount: Int64
  /// The file's locations, the preferred one first.
  let urls: [String]
  /// The length of a piece; nil for no piece hashes.
  var pieceByteCount: Int64?
  /// Whether it contains the hash of the whole file.
  var hasChecksum = false
  /// Whether it contains the length.
  var hasSize = true

  private var checksum: String { Digest.ofContent(seed: seed, byteCount: byteCount) }

  private var size: String { hasSize ? "<size>\(byteCount)</size>" : "" }

  private var pieceDigests: [String] {
    guard let pieceByteCount else { return [] }
    return stride(from: 0, to: byteCount, by: Int(pieceByteCount)).map { offset in
      Digest.ofContent(
        seed: seed, offset: offset, byteCount: min(pieceByteCount, byteCount - offset))
    }
  }

  private func escaped(_ url: String) -> String { url.replacing("&", with: "&amp;") }

  /// The form of RFC 5854.
  var version4: String {
    var text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <metalink xmlns="urn:ietf:params:xml:ns:metalink">
        <file name="\(name)">
          \(size)

      """
    if hasChecksum { text += "    <hash type=\"sha-256\">\(checksum)</hash>\n" }
    if let pieceByteCount {
      text += "    <pieces length=\"\(pieceByteCount)\" type=\"sha-256\">\n"
      for digest in pieceDigests { text += "      <hash>\(digest)</hash>\n" }
      text += "    </pieces>\n"
    }
    for (index, url) in urls.enumerated() {
      text += "    <url priority=\"\(index + 1)\">\(escaped(url))</url>\n"
    }
    return text + "  </file>\n</metalink>\n"
  }

  /// The form of metalinker.org.
  var version3: String {
    var text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <metalink version="3.0" xmlns="http://www.metalinker.org/">
        <files><file name="\(name)">
          \(size)
          <verification>

      """
    if hasChecksum { text += "      <hash type=\"sha256\">\(checksum)</hash>\n" }
    if let pieceByteCount {
      text += "      <pieces length=\"\(pieceByteCount)\" type=\"sha256\">\n"
      for (index, digest) in pieceDigests.enumerated() {
        text += "        <hash piece=\"\(index)\">\(digest)</hash>\n"
      }
      text += "      </pieces>\n"
    }
    text += "    </verification>\n    <resources>\n"
    for (index, url) in urls.enumerated() {
      text += "      <url type=\"http\" preference=\"\(100 - index)\">\(escaped(url))</url>\n"
    }
    return text + "    </resources>\n  </file></files>\n</metalink>\n"
  }
}
