import HTTPTransferCore

@testable import RemoteFiles

/// A read that waits, for tests that look at its range and its deadline.
func parkedRead(
  _ range: ByteRange, since: ContinuousClock.Instant = .now, timeout: Duration = .seconds(60)
) -> ParkedRead {
  ParkedRead(range: range, reply: NullReply(), since: since, deadline: since + timeout)
}

extension ParkedRead {
  /// Tells reads of equal ranges apart.
  var identity: ObjectIdentifier { ObjectIdentifier(reply) }
}
