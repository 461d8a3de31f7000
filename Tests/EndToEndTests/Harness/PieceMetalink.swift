import CCrypto
import Foundation
import OriginContent

/// A Metalink (RFC 5854) of one file of the Origin's content, with the hashes of its pieces.
struct PieceMetalink {
  let file: RemoteTestFile
  /// The length of every piece except the last, in bytes.
  let pieceByteCount: Int64
  let urls: [String]
  /// A wrong length, which contradicts the servers.
  var statedByteCount: Int64?

  /// The document.
  var text: String {
    let hashes = stride(from: 0, to: file.byteCount, by: Int64.Stride(pieceByteCount)).map {
      start in
      let count = min(pieceByteCount, file.byteCount - start)
      let digest = Digest.ofContent(seed: file.seed, offset: start, byteCount: count)
      return "      <hash>\(digest)</hash>"
    }
    let urls = urls.enumerated().map { index, url in
      let escaped = url.replacingOccurrences(of: "&", with: "&amp;")
      return "    <url priority=\"\(index + 1)\">\(escaped)</url>"
    }
    return """
      <?xml version="1.0" encoding="UTF-8"?>
      <metalink xmlns="urn:ietf:params:xml:ns:metalink">
        <file name="\(file.name)">
          <size>\(statedByteCount ?? file.byteCount)</size>
          <pieces length="\(pieceByteCount)" type="sha-256">
      \(hashes.joined(separator: "\n"))
          </pieces>
      \(urls.joined(separator: "\n"))
        </file>
      </metalink>

      """
  }
}
