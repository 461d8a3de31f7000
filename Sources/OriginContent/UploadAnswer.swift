/// The response to a completely read upload, which reports or returns the received body.
package struct UploadAnswer: Equatable, Sendable {
  /// The maximum number of body bytes to send back, which are kept in memory.
  package static let echoLimit = 1 << 20

  /// The head without the fields of the content.
  package internal(set) var head: ResponseHead

  /// Whether the body is sent back instead of its length and hash.
  package let isEcho: Bool

  /// The steps that send the response.
  package func steps(for body: ReceivedBody) -> [ResponsePlan.Step] {
    var head = head
    var contentType = "application/octet-stream"
    var content = body.kept
    if isEcho, body.byteCount > Int64(Self.echoLimit) {
      head.status = 413
      contentType = "text/plain; charset=utf-8"
      content = Array("only a body of at most \(Self.echoLimit) bytes is sent back\n".utf8)
    } else if !isEcho {
      contentType = "application/json"
      content = Array("{\"bytes\": \(body.byteCount), \"fnv\": \"\(body.hash.text)\"}\n".utf8)
    }
    head.add("Content-Type", contentType)
    head.add("Content-Length", String(content.count))
    return [.head(head), .text(content)]
  }
}
