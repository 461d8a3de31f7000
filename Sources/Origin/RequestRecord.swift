import OriginContent

/// A line of the request log; docs/ORIGIN.md describes the members.
struct RequestRecord: Encodable {
  let id: Int64
  let timeMilliseconds: Double
  let durationMilliseconds: Double
  let connection: Int64
  let request: RequestHead
  let received: ReceivedBody
  let status: Int?
  let bodyByteCount: Int64
  let fault: Fault?
  let ruleName: String?
  let isComplete: Bool

  private enum CodingKeys: String, CodingKey {
    case id
    case timeMilliseconds = "time_ms"
    case durationMilliseconds = "duration_ms"
    case connection
    case method
    case target
    case path
    case range
    case status
    case bodyByteCount = "body_bytes"
    case requestBodyByteCount = "request_body_bytes"
    case requestBodyHash = "request_body_hash"
    case headers
    case fault
    case ruleName = "rule"
    case isComplete = "complete"
  }

  /// Members without a value are null.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(id, forKey: .id)
    try container.encode(timeMilliseconds, forKey: .timeMilliseconds)
    try container.encode(durationMilliseconds, forKey: .durationMilliseconds)
    try container.encode(connection, forKey: .connection)
    try container.encode(request.method, forKey: .method)
    try container.encode(request.target, forKey: .target)
    try container.encode(request.path, forKey: .path)
    try container.encode(request.fields["range"], forKey: .range)
    try container.encode(status, forKey: .status)
    try container.encode(bodyByteCount, forKey: .bodyByteCount)
    try container.encode(received.byteCount, forKey: .requestBodyByteCount)
    let hash = received.byteCount > 0 ? received.hash.text : nil
    try container.encode(hash, forKey: .requestBodyHash)
    try container.encode(request.fields, forKey: .headers)
    try container.encode(fault?.rawValue, forKey: .fault)
    try container.encode(ruleName, forKey: .ruleName)
    try container.encode(isComplete, forKey: .isComplete)
  }
}
