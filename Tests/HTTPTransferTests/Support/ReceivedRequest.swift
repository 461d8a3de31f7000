/// A request as the server received it.
struct ReceivedRequest: Sendable {
  /// The number of its connection, from 1.
  let connection: Int
  let method: String
  /// The request target: path and query.
  let target: String
  /// The request line and the fields as received.
  let headText: String
  /// The bytes of the request line and the fields.
  let headBytes: [UInt8]
  /// The part of the body that was read, without the framing of chunks.
  var body: [UInt8] = []
  private let fields: [(name: String, value: String)]

  /// Splits the lines before the blank one; nil if the first is not a request line.
  init?(head: [UInt8], connection: Int) {
    headText = String(decoding: head, as: UTF8.self)
    headBytes = head
    let lines = headText.split(separator: "\r\n")
    let parts = lines.first?.split(separator: " ") ?? []
    guard parts.count == 3 else { return nil }
    self.connection = connection
    method = String(parts[0])
    target = String(parts[1])
    fields = lines.dropFirst().map { line in
      let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      let value = halves.count > 1 ? halves[1].drop { $0 == " " } : ""
      return (halves[0].lowercased(), String(value))
    }
  }

  /// The values of a field, by its name in lower case.
  subscript(_ name: String) -> [String] {
    fields.filter { $0.name == name }.map(\.value)
  }

  /// The length of the body that the head declares; 0 if it declares none.
  var contentLength: Int { self["content-length"].first.flatMap { Int($0) } ?? 0 }

  /// The first and last requested byte, if there is one range; the last is nil for "to the end".
  var range: (first: Int, last: Int?)? {
    guard let field = self["range"].first, field.hasPrefix("bytes=") else { return nil }
    let ends = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Int(ends[0]) else { return nil }
    return (first, Int(ends[1]))
  }
}
