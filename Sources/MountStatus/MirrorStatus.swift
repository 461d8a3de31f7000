/// What is known of one of the servers of a file.
public struct MirrorStatus: Sendable, Hashable, Decodable {
  public enum State: String, Sendable, Hashable, CaseIterable, Decodable {
    /// Nothing was asked of it yet, or nothing since the file has changed.
    case untried
    /// It has the same bytes as the others.
    case agreed
    /// Its file is as long as the others': it is used where no other can be.
    case similar
    /// It has failed lately: others are asked first.
    case resting
    /// It has other bytes: it is not asked again.
    case refused
  }

  /// Without userinfo and query secrets.
  public var url: String

  public var state: State

  /// Why it rests or was refused; nil else.
  public var reason: String?

  /// What one connection brings, in bytes per second; nil while unknown.
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

  /// The line of `.status`; nil where there is nothing to tell.
  var textLine: String? {
    let reason = escapingControls(reason ?? "")
    return switch state {
    case .refused: "    mirror \(escapingControls(url)) is not asked again: \(reason)"
    case .resting: "    mirror \(escapingControls(url)) rests: \(reason)"
    case .untried, .agreed, .similar: nil
    }
  }
}
