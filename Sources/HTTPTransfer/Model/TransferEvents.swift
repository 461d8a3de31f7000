/// The events of one transfer, for one listener.
///
/// It starts with a summary of the events so far, whenever it is created, and ends after `finished`
/// or `failed`. For a slow listener, neighbouring `received` (or `sent`) events merge, so a slow
/// listener affects neither memory nor the transfer.
public struct TransferEvents: AsyncSequence, Sendable {
  public typealias Element = TransferEvent
  public typealias Failure = Never

  let buffer: EventBuffer<TransferEvent.Kind>

  /// Returns the events one by one; each sequence has one iterator.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let buffer: EventBuffer<TransferEvent.Kind>

    /// Waits for the next event; nil after the last one and when the task is cancelled.
    public mutating func next() async -> TransferEvent? {
      await buffer.next().map { TransferEvent(number: $0.number, kind: $0.kind) }
    }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(buffer: buffer) }
}

extension TransferEvent.Kind {
  /// Merges two events if that loses no information: bytes of the same kind and sign.
  static func sum(_ first: Self, _ second: Self) -> Self? {
    switch (first, second) {
    case (.received(let one), .received(let two)) where (one < 0) == (two < 0):
      .received(byteCount: one + two)
    case (.sent(let one), .sent(let two)) where (one < 0) == (two < 0): .sent(byteCount: one + two)
    default: nil
    }
  }
}
