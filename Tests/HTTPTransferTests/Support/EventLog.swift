import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

/// All events that one listener has received, and their sums.
struct EventLog: Sendable {
  private(set) var events: [TransferEvent] = []

  /// Receives events until there are no more.
  ///
  /// - Parameters:
  ///   - events: the listener.
  ///   - pause: how long the listener sleeps after each event.
  init(_ events: TransferEvents, pause: Duration = .zero) async {
    for await event in events {
      self.events.append(event)
      if pause > .zero { try? await Task.sleep(for: pause) }
    }
  }

  private func sum(_ byteCount: (TransferEvent.Kind) -> Int64?) -> Int64 {
    events.reduce(0) { $0 + (byteCount($1.kind) ?? 0) }
  }

  // MARK: Sums

  var resumed: Int64 { sum { if case .resumed(let count) = $0 { count } else { nil } } }
  var received: Int64 { sum { if case .received(let count) = $0 { count } else { nil } } }
  var sent: Int64 { sum { if case .sent(let count) = $0 { count } else { nil } } }

  /// The total according to the events.
  var total: Int64 {
    sum {
      switch $0 {
      case .started(let total): total
      case .totalChanged(let difference): difference
      default: nil
      }
    }
  }

  // MARK: Single kinds

  /// The total in `started`; nil if there was no such event or the total was unknown.
  var startedTotal: Int64? {
    for event in events { if case .started(let total) = event.kind { return total } }
    return nil
  }

  var retries: [(error: TransferError, attempt: Int, delay: Duration)] {
    events.compactMap {
      if case .retrying(let error, let attempt, let delay) = $0.kind {
        (error, attempt, delay)
      } else {
        nil
      }
    }
  }

  var restarts: [String] {
    events.compactMap { if case .restarted(let reason) = $0.kind { reason } else { nil } }
  }

  /// The paths of the excluded mirrors, with the reasons.
  var excludedMirrors: [(path: String, reason: String)] {
    events.compactMap {
      if case .mirrorExcluded(let url, let reason) = $0.kind { (url.path, reason) } else { nil }
    }
  }

  var redirects: [Int] {
    events.compactMap { if case .redirected(_, let status) = $0.kind { status } else { nil } }
  }

  var responses: [HTTPResponse] {
    events.compactMap { if case .responded(let head, _) = $0.kind { head } else { nil } }
  }

  /// Every `sent` and `received` difference below zero.
  var negativeDifferences: [Int64] {
    events.compactMap {
      switch $0.kind {
      case .sent(let count) where count < 0: count
      case .received(let count) where count < 0: count
      default: nil
      }
    }
  }

  var hasFinished: Bool { events.contains { if case .finished = $0.kind { true } else { false } } }

  var failure: TransferError? {
    for event in events { if case .failed(let error) = event.kind { return error } }
    return nil
  }

  // MARK: Rules

  /// Checks the rules for every sequence of events.
  ///
  /// The numbers have no gap, there is a beginning and one final end, and sums are never below
  /// zero.
  ///
  /// - Parameters:
  ///   - isSilent: whether the sequence ends without an event for its end.
  ///   - location: the place to report.
  func checkOrder(isSilent: Bool = false, _ location: SourceLocation) {
    #expect(events.map(\.number) == Array(0..<events.count), sourceLocation: location)
    let ends = events.indices.filter {
      switch events[$0].kind {
      case .finished, .failed: true
      default: false
      }
    }
    #expect(ends == (isSilent ? [] : [events.count - 1]), sourceLocation: location)
    var (present, sent, total): (Int64, Int64, Int64) = (0, 0, 0)
    for (index, event) in events.enumerated() {
      switch event.kind {
      case .started(let known):
        #expect(index == 0, "started is the first event", sourceLocation: location)
        total += known ?? 0
      case .resumed(let count), .received(let count): present += count
      case .sent(let count): sent += count
      case .totalChanged(let difference):
        // An unknown total that becomes 0 is reported, too.
        #expect(difference != 0 || total == 0, sourceLocation: location)
        total += difference
      case .redirected, .responded, .retrying, .mirrorExcluded, .restarted, .finished, .failed:
        break
      }
      #expect(sent >= 0 && total >= 0, "event \(index)", sourceLocation: location)
    }
    #expect(present >= 0, sourceLocation: location)
  }
}
