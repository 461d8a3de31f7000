internal import Synchronization

/// The number of transfers of a client that have begun and not ended.
final class ActiveTransfers: Sendable {
  private let value = Atomic<Int>(0)

  var count: Int { value.load(ordering: .relaxed) }

  func began() { value.wrappingAdd(1, ordering: .relaxed) }
  func ended() { value.wrappingSubtract(1, ordering: .relaxed) }
}
