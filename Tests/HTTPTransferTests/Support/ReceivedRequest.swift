/// The head of a request as the server got it.
struct ReceivedRequest: Sendable {
  /// The number of its connection, from 1.
  let connection: Int
  let method: String
  /// The request target: path and query.
  let target: String
  private let fields: [(name: String, value: String)]

  /// Splits the lines before the blank one; nil if the first is no request line.
  init?(head: [UInt8], connection: Int) {
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
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
}
