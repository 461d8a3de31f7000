internal import TextFormat

/// The state of one of a file's servers.
package struct MirrorStatus: Sendable, Hashable, Decodable {
  package enum State: String, Sendable, Hashable, CaseIterable, Decodable {
    /// No request was sent to it yet, or none since the file changed.
    case untested
    /// It has the same bytes as the others.
    case verified
    /// Its file has the same length as the others; it is used only if no other server can be.
    case unproven
    /// It failed recently: the other servers are preferred.
    case resting
    /// It has different bytes and gets no more requests.
    case refused
  }

  /// Without userinfo and query secrets.
  package var url: String

  package var state: State

  /// Why the server is backing off or was refused; nil otherwise.
  package var reason: String?

  /// The speed of one connection, in bytes per second; nil while unknown.
  package var bytesPerSecond: Int64?

  package init(url: String, state: State, reason: String? = nil, bytesPerSecond: Int64? = nil) {
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
    case .untested, .verified, .unproven: nil
    }
  }
}
