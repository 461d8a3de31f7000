import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import SeededRandom
import Testing

/// Who is sent next to an origin that takes so many requests at once.
@Suite struct ExchangeQueueTests {
  private final class Receiver: ExchangeReceiver {
    func receive(
      head: HTTPResponse, from url: RemoteURL, transfer: ExchangeID
    ) -> ExchangeDisposition { .proceed }
    func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition { .proceed }
    func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {}
  }

  private func entry(
    _ number: UInt64, _ priority: ExchangePriority = .demand, at url: String = "http://a/file"
  ) throws -> ExchangeQueue.Entry {
    var request = ExchangeRequest(url: try RemoteURL(url))
    request.priority = priority
    return ExchangeQueue.Entry(
      id: ExchangeID(rawValue: number), request: request, receiver: Receiver())
  }

  /// Everybody who finds a place now.
  private func started(_ queue: inout ExchangeQueue) -> [UInt64] {
    var ids: [UInt64] = []
    while let entry = queue.next() { ids.append(entry.id.rawValue) }
    return ids
  }

  @Test("As many as there are places, in the order of arrival; the next when one leaves")
  func order() throws {
    var queue = ExchangeQueue(placeCount: 2)
    for number in 1...4 { queue.append(try entry(UInt64(number))) }
    #expect(started(&queue) == [1, 2])
    queue.leave("http://a")
    #expect(started(&queue) == [3])
    queue.leave("http://a")
    queue.leave("http://a")
    #expect(started(&queue) == [4])
    #expect(queue.isEmpty)
  }

  @Test("Each origin has places of its own")
  func origins() throws {
    var queue = ExchangeQueue(placeCount: 1)
    queue.append(try entry(1))
    queue.append(try entry(2))
    queue.append(try entry(3, at: "http://b/file"))
    #expect(Set(started(&queue)) == [1, 3])
  }

  @Test("Demand comes before read-ahead, and has places that read-ahead does not take")
  func priorities() throws {
    var queue = ExchangeQueue(placeCount: 32)
    for number in 1...40 { queue.append(try entry(UInt64(number), .readAhead)) }
    #expect(started(&queue).count == 30)
    for number in 41...43 { queue.append(try entry(UInt64(number))) }
    #expect(started(&queue) == [41, 42])
    queue.leave("http://a")
    #expect(started(&queue) == [43])
  }

  @Test("Read-ahead that somebody has come to wait for overtakes the rest")
  func raised() throws {
    var queue = ExchangeQueue(placeCount: 1)
    for number in 1...4 { queue.append(try entry(UInt64(number), .readAhead)) }
    #expect(started(&queue) == [1])
    queue.update(ExchangeID(rawValue: 3)) { $0.priority = .demand }
    queue.leave("http://a")
    #expect(started(&queue) == [3])
    queue.leave("http://a")
    #expect(started(&queue) == [2])
  }

  @Test("Who has gone takes no place")
  func removed() throws {
    var queue = ExchangeQueue(placeCount: 1)
    for number in 1...3 { queue.append(try entry(UInt64(number))) }
    #expect(started(&queue) == [1])
    #expect(queue.remove(ExchangeID(rawValue: 2)) != nil)
    #expect(queue.remove(ExchangeID(rawValue: 2)) == nil)
    queue.leave("http://a")
    #expect(started(&queue) == [3])
    queue.append(try entry(4))
    #expect(queue.removeAll().count == 1)
    queue.leave("http://a")
    #expect(started(&queue).isEmpty)
  }

  @Test("Whatever comes and goes, everybody who stays is started once, and places are kept to")
  func anyOrder() throws {
    var random = SeededGenerator(seed: 1)
    var queue = ExchangeQueue(placeCount: 16)
    var waiting: Set<UInt64> = []
    var running: [String: Int] = [:]
    var startedCount = 0
    for number in 0..<UInt64(20_000) {
      let origin = ["http://a", "http://b", "https://a:8443"].randomElement(using: &random) ?? ""
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        queue.append(
          try entry(number, Bool.random(using: &random) ? .demand : .readAhead, at: "\(origin)/x"))
        waiting.insert(number)
      case 5..<8:
        guard let count = running[origin], count > 0 else { continue }
        running[origin] = count - 1
        queue.leave(origin)
      case 8:
        guard let some = waiting.randomElement(using: &random) else { continue }
        queue.update(ExchangeID(rawValue: some)) { $0.priority = .demand }
      default:
        guard let some = waiting.randomElement(using: &random) else { continue }
        #expect(queue.remove(ExchangeID(rawValue: some)) != nil)
        waiting.remove(some)
      }
      while let entry = queue.next() {
        #expect(waiting.remove(entry.id.rawValue) != nil)
        running[entry.request.url.normalizedOrigin, default: 0] += 1
        startedCount += 1
      }
      #expect(running.values.allSatisfy { $0 <= 16 })
    }
    #expect(startedCount > 1000)
    for (origin, count) in running { for _ in 0..<count { queue.leave(origin) } }
    while let entry = queue.next() {
      waiting.remove(entry.id.rawValue)
      queue.leave(entry.request.url.normalizedOrigin)
    }
    #expect(waiting.isEmpty)
    #expect(queue.isEmpty)
  }
}
