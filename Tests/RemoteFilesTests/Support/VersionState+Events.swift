import HTTPTransfer
import HTTPTransferCore

@testable import RemoteFiles

/// The events of requests, for tests that control them.
extension VersionState {
  mutating func addSegment(
    range: ByteRange, isWhole: Bool, now: ContinuousClock.Instant
  ) -> Segment {
    addSegment(PlannedRequest(range: range, isWhole: isWhole), now: now)
  }

  mutating func setExchange(_ exchange: ExchangeID, of id: SegmentID) {
    note(.sentAs(exchange), of: id, now: .now)
  }

  mutating func setMirror(_ mirror: Int, of id: SegmentID) {
    note(.sentTo(mirror: mirror), of: id, now: .now)
  }

  mutating func sent(_ id: SegmentID, now: ContinuousClock.Instant) {
    note(.sent, of: id, now: now)
  }
}
