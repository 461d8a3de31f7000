internal import HTTPTransferCore
internal import HTTPTypes

/// A content coding that can be decoded (RFC 9110 §8.4.1).
enum ContentCoding: String {
  case deflate
  case gzip
  case brotli = "br"
  case zstandard = "zstd"

  /// The value of `Accept-Encoding` that names all of them.
  static let acceptField = "deflate, gzip, br, zstd"

  /// How many codings one body may have: each needs memory, up to 16 MiB for brotli.
  private static let limit = 2

  /// The codings of a response's body, in the order in which the server has applied them.
  ///
  /// - Throws: if they cannot be decoded.
  static func list(of fields: HTTPFields) throws(DecodingFailure) -> [ContentCoding] {
    // Known names are ASCII, so it does not matter how other bytes are read.
    let text = ContentVersion(fields, completeLength: nil).contentCoding ?? ""
    var codings: [ContentCoding] = []
    for part in text.split(separator: ",") {
      let name = part.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
      // Some servers send "none" for identity.
      if name.isEmpty || name == "identity" || name == "none" { continue }
      guard let coding = ContentCoding(rawValue: name == "x-gzip" ? "gzip" : String(name)) else {
        throw .unknown(String(name.prefix(32)))
      }
      codings.append(coding)
    }
    guard codings.count <= limit else { throw .tooMany(limit: limit) }
    return codings
  }

  /// A decoder of one body in this coding.
  func makeDecoder() throws(DecodingFailure) -> any ContentDecoder {
    let decoder: (any ContentDecoder)? =
      switch self {
      case .deflate, .gzip: InflateDecoder(self)
      case .brotli: BrotliDecoder()
      case .zstandard: ZstandardDecoder()
      }
    guard let decoder else { throw .noMemory }
    return decoder
  }
}
