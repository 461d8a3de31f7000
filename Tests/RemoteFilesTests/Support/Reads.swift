import HTTPTransferCore
import Synchronization

@testable import RemoteFiles

private let lastRead = Atomic<Int>(0)

/// A waiting read, for tests of its range and its deadline; each has its own number.
func parkedRead(
  _ range: ByteRange, since: ContinuousClock.Instant = .now, timeout: Duration = .seconds(60)
) -> ParkedRead {
  let id = lastRead.add(1, ordering: .relaxed).newValue
  return ParkedRead(
    id: ReadID(rawValue: id), range: range, since: since, deadline: since + timeout)
}
