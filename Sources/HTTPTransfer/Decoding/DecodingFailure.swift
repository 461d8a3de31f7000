/// Why a body cannot be decoded.
enum DecodingFailure: Error, CustomStringConvertible {
  case unknown(String)
  case tooMany(limit: Int)
  case damaged(ContentCoding, detail: String = "")
  /// Bytes follow the end of the coded data.
  case excess(ContentCoding)
  case noMemory

  var description: String {
    switch self {
    case .unknown(let name):
      "the body has the content coding '\(name)', which was not asked for and cannot be decoded"
    case .tooMany(let limit):
      "the body has more than \(limit) content codings"
    case .damaged(let coding, let detail):
      "the \(coding.rawValue) data is damaged" + (detail.isEmpty ? "" : ": \(detail)")
    case .excess(let coding):
      "bytes follow the end of the \(coding.rawValue) data"
    case .noMemory: "no memory to decode the body"
    }
  }
}
