internal import TextFormat

/// How long reads of a mount wait for servers, in seconds.
package struct TimeoutStatus: Sendable, Hashable, Decodable {
  /// The time limit of a read or open.
  package var readSeconds: Double

  /// How long an open waits for a server that has never answered for the file.
  package var firstAnswerSeconds: Double

  /// How long a server must be unreachable until reads fail at once.
  package var outageSeconds: Double

  package init(readSeconds: Double, firstAnswerSeconds: Double, outageSeconds: Double) {
    self.readSeconds = readSeconds
    self.firstAnswerSeconds = firstAnswerSeconds
    self.outageSeconds = outageSeconds
  }

  enum CodingKeys: String, CodingKey {
    case readSeconds = "read_seconds"
    case firstAnswerSeconds = "first_answer_seconds"
    case outageSeconds = "outage_seconds"
  }

  /// The line of `.status`.
  var text: String {
    let (read, first, outage) = (
      Self.text(readSeconds), Self.text(firstAnswerSeconds), Self.text(outageSeconds)
    )
    return "timeouts: read \(read), first answer \(first), outage \(outage)"
  }

  private static func text(_ seconds: Double) -> String {
    seconds == seconds.rounded() ? humanDuration(seconds: seconds) : "\(seconds)s"
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(CodingKeys.readSeconds, readSeconds)
      writer.member(CodingKeys.firstAnswerSeconds, firstAnswerSeconds)
      writer.member(CodingKeys.outageSeconds, outageSeconds)
    }
  }
}
