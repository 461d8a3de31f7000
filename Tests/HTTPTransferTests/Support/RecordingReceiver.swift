import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Synchronization

/// A receiver that records its calls and returns prescribed results.
final class RecordingReceiver: ExchangeReceiver {
  /// All calls of a receiver.
  struct Record: Sendable {
    var heads: [HTTPResponse] = []
    /// The URLs of the heads.
    var urls: [RemoteURL] = []
    var transfers: [ExchangeID] = []
    var body: [UInt8] = []
    var maximumPiece = 0
    var completions: [ExchangeCompletion] = []
    var metrics = ExchangeMetrics()
    /// Calls out of the promised order: a body before the head, or any call after the end.
    var misplacedCallCount = 0

    var text: String { String(decoding: body, as: UTF8.self) }

    /// The transfer's end in a word: `finished`, `stopped`, `cancelled` or the error's code.
    var outcome: String {
      switch completions.first {
      case nil: "none"
      case .finished: "finished"
      case .stopped: "stopped"
      case .cancelled: "cancelled"
      case .failed(let error): error.code.rawValue
      }
    }

    var error: ExchangeError? {
      if case .failed(let error) = completions.first { error } else { nil }
    }
  }

  private struct State {
    var record = Record()
    var waiter: CheckedContinuation<Record, Never>?
  }

  private let onHead: @Sendable (HTTPResponse) -> ExchangeDisposition
  private let onBody: @Sendable (_ receivedByteCount: Int) -> ExchangeDisposition
  private let state = Mutex(State())

  init(
    onHead: @escaping @Sendable (HTTPResponse) -> ExchangeDisposition = { _ in .proceed },
    onBody: @escaping @Sendable (Int) -> ExchangeDisposition = { _ in .proceed }
  ) {
    self.onHead = onHead
    self.onBody = onBody
  }

  func receive(
    head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
  ) -> ExchangeDisposition {
    state.withLock { state in
      if !state.record.completions.isEmpty { state.record.misplacedCallCount += 1 }
      state.record.heads.append(head)
      state.record.urls.append(url)
      state.record.transfers.append(exchange)
    }
    return onHead(head)
  }

  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition {
    let count = state.withLock { state in
      if state.record.heads.isEmpty || !state.record.completions.isEmpty {
        state.record.misplacedCallCount += 1
      }
      state.record.body += body
      state.record.maximumPiece = max(state.record.maximumPiece, body.count)
      return state.record.body.count
    }
    return onBody(count)
  }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    state.withLock { state in
      state.record.completions.append(completion)
      state.record.metrics = metrics
    }
    let (waiter, record) = takeWaiter()
    waiter?.resume(returning: record)
  }

  /// The record so far.
  var record: Record { state.withLock { $0.record } }

  /// The record at the transfer's end, or when the test's time is up; to be awaited once.
  func finished() async -> Record {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ended = state.withLock { state -> Record? in
          if !state.record.completions.isEmpty || Task.isCancelled { return state.record }
          state.waiter = continuation
          return nil
        }
        if let ended { continuation.resume(returning: ended) }
      }
    } onCancel: {
      let (waiter, record) = takeWaiter()
      waiter?.resume(returning: record)
    }
  }

  private func takeWaiter() -> (CheckedContinuation<Record, Never>?, Record) {
    state.withLock { state in
      let waiter = state.waiter
      state.waiter = nil
      return (waiter, state.record)
    }
  }
}

extension ExchangeClient {
  /// Executes `request` and returns the record of its receiver.
  func record(_ request: ExchangeRequest) async -> RecordingReceiver.Record {
    let receiver = RecordingReceiver()
    start(request, receiver: receiver)
    return await receiver.finished()
  }

  /// Executes a request for `url`.
  func record(_ url: String) async throws -> RecordingReceiver.Record {
    await record(ExchangeRequest(url: try RemoteURL(url)))
  }

  /// Returns when the network thread has executed all earlier calls.
  func settle() async {
    await withCheckedContinuation { continuation in
      perform { continuation.resume() }
    }
  }
}

extension TransferClient {
  /// See ``ExchangeClient``.
  func record(_ request: ExchangeRequest) async -> RecordingReceiver.Record {
    await exchanges.record(request)
  }

  /// See ``ExchangeClient``.
  func record(_ url: String) async throws -> RecordingReceiver.Record {
    try await exchanges.record(url)
  }

  /// See ``ExchangeClient``.
  func settle() async { await exchanges.settle() }
}
