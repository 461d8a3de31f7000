import HTTPTransferCore

@testable import RemoteFiles

extension VersionState {
  /// Stores bytes while the network thread has only waited for its sockets.
  mutating func stored(
    _ id: SegmentID, _ range: ByteRange, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    stored(
      id, range, present: [range], idle: line.clock.seconds(at: now), now: now, into: &actions)
  }
}
