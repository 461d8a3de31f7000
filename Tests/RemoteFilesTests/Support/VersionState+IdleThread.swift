import HTTPTransferCore

@testable import RemoteFiles

extension VersionState {
  /// Bytes are stored while the network thread has done nothing but wait for its sockets.
  mutating func stored(
    _ id: SegmentID, _ range: ByteRange, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    stored(
      id, range, present: [range], idle: line.clock.seconds(at: now), now: now, into: &actions)
  }
}
