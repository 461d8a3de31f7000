import Dispatch
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Synchronization

/// A receiver that records the events of one exchange.
final class ExchangeTape: ExchangeReceiver {
  struct Record: Sendable {
    var heads: [HTTPResponse] = []
    var body: [UInt8] = []
    var completions: [ExchangeCompletion] = []
    /// The first call that violates the promised order: head, body, end.
    var brokenOrder: String?
  }

  private let state = Mutex(Record())
  private let ended = DispatchSemaphore(value: 0)

  func receive(
    head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
  ) -> ExchangeDisposition {
    state.withLock { record in
      if !record.completions.isEmpty { record.brokenOrder = "a head after the end" }
      record.heads.append(head)
    }
    return .proceed
  }

  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition {
    state.withLock { record in
      if record.heads.isEmpty { record.brokenOrder = "a body before the head" }
      if !record.completions.isEmpty { record.brokenOrder = "a body after the end" }
      record.body += body
    }
    return .proceed
  }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    state.withLock { $0.completions.append(completion) }
    ended.signal()
  }

  /// The record at the exchange's end; nil if it has not ended after `seconds`.
  func record(within seconds: Int) -> Record? {
    ended.wait(timeout: .now() + .seconds(seconds)) == .success ? state.withLock { $0 } : nil
  }
}
