internal import TextFormat

/// A look-up or open that waits for the answer of a server.
package struct WaitingOpen: Sendable, Hashable, Decodable {
  /// How long it has waited, in seconds.
  package var waitedSeconds: Double

  /// Why it waits, in a few words, such as `connecting to the server`.
  package var reason: String

  package init(waitedSeconds: Double, reason: String) {
    self.waitedSeconds = waitedSeconds
    self.reason = reason
  }

  enum CodingKeys: String, CodingKey {
    case waitedSeconds = "waited_seconds"
    case reason
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(CodingKeys.waitedSeconds, waitedSeconds)
      writer.member(CodingKeys.reason, reason)
    }
  }

  /// The line of `.status`.
  var textLine: String {
    "    open waits \(decimal(waitedSeconds, fractionDigitCount: 1)) s: \(escapingControls(reason))"
  }
}
