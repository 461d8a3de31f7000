/// The events of one transfer, for one listener.
///
/// Made at any time, it starts with what has happened so far. It ends after `finished` or `failed`.
/// A listener that is slow finds neighbouring `received` (and `sent`) events added up, so that
/// neither memory nor the transfer depends on it.
public struct TransferEvents: AsyncSequence, Sendable {
  public typealias Element = TransferEvent
  public typealias Failure = Never

  let buffer: EventBuffer<TransferEvent.Kind>

  /// Takes the events one by one; there is one iterator for each sequence.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let buffer: EventBuffer<TransferEvent.Kind>

    /// The next event, when there is one; nil after the last one and when the task is cancelled.
    public mutating func next() async -> TransferEvent? {
      await buffer.next().map { TransferEvent(number: $0.number, kind: $0.kind) }
    }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(buffer: buffer) }
}

extension TransferEvent.Kind {
  /// Two events in one, where that loses nothing: bytes of the same kind and sign.
  static func sum(_ first: Self, _ second: Self) -> Self? {
    switch (first, second) {
    case (.received(let one), .received(let two)) where (one < 0) == (two < 0):
      .received(byteCount: one + two)
    case (.sent(let one), .sent(let two)) where (one < 0) == (two < 0): .sent(byteCount: one + two)
    default: nil
    }
  }
}
