internal import TextFormat

/// The state of one of a file's servers.
public struct MirrorStatus: Sendable, Hashable, Decodable {
  public enum State: String, Sendable, Hashable, CaseIterable, Decodable {
    /// No request was sent to it yet, or none since the file changed.
    case untried
    /// It has the same bytes as the others.
    case agreed
    /// Its file has the same length as the others; it is used only if no other server can be.
    case similar
    /// It failed recently: the other servers are preferred.
    case resting
    /// It has different bytes and gets no more requests.
    case refused
  }

  /// Without userinfo and query secrets.
  public var url: String

  public var state: State

  /// Why the server is backing off or was refused; nil otherwise.
  public var reason: String?

  /// The speed of one connection, in bytes per second; nil while unknown.
  public var bytesPerSecond: Int64?

  public init(url: String, state: State, reason: String? = nil, bytesPerSecond: Int64? = nil) {
    self.url = url
    self.state = state
    self.reason = reason
    self.bytesPerSecond = bytesPerSecond
  }

  enum CodingKeys: String, CodingKey {
    case url, state, reason
    case bytesPerSecond = "bytes_per_second"
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(CodingKeys.url, url)
      writer.member(CodingKeys.state, state.rawValue)
      writer.member(CodingKeys.reason, reason)
      writer.member(CodingKeys.bytesPerSecond, bytesPerSecond)
    }
  }

  /// The line of `.status`; nil if there is nothing to report.
  var textLine: String? {
    let reason = escapingControls(reason ?? "")
    return switch state {
    case .refused: "    mirror \(escapingControls(url)) is not asked again: \(reason)"
    case .resting: "    mirror \(escapingControls(url)) rests: \(reason)"
    case .untried, .agreed, .similar: nil
    }
  }
}
