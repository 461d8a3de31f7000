import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import SeededRandom
import Testing

/// The order of exchanges with an origin that limits the number of requests at once.
@Suite struct ExchangeQueueTests {
  private final class Receiver: ExchangeReceiver {
    func receive(
      head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
    ) -> ExchangeDisposition { .proceed }
    func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition { .proceed }
    func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {}
  }

  private func entry(
    _ number: UInt64, _ priority: ExchangePriority = .demand, at url: String = "http://a/file",
    rateLimit: RateLimit? = nil
  ) throws -> ExchangeQueue.Entry {
    var request = ExchangeRequest(url: try RemoteURL(url))
    request.priority = priority
    request.rateLimit = rateLimit
    return ExchangeQueue.Entry(
      id: ExchangeID(rawValue: number), request: request, receiver: Receiver())
  }

  /// The exchanges that get a place now.
  private func started(_ queue: inout ExchangeQueue) -> [UInt64] {
    var ids: [UInt64] = []
    while let entry = queue.next() { ids.append(entry.id.rawValue) }
    return ids
  }

  private func leave(_ queue: inout ExchangeQueue, _ number: UInt64) {
    queue.leave(ExchangeID(rawValue: number))
  }

  @Test("As many as there are places, in the order of arrival; the next when one leaves")
  func order() throws {
    var queue = ExchangeQueue(placeCount: 2)
    for number in 1...4 { queue.append(try entry(UInt64(number))) }
    #expect(started(&queue) == [1, 2])
    leave(&queue, 2)
    #expect(started(&queue) == [3])
    leave(&queue, 1)
    leave(&queue, 3)
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

  @Test(
    "Wherever its redirects lead, an exchange has a place of the origin that the user has named")
  func namedOrigins() throws {
    var queue = ExchangeQueue(placeCount: 2)
    for number in 1...3 {
      var request = ExchangeRequest(
        url: try RemoteURL("http://target\(number)/file"), confidentialOrigin: "http://a")
      if number == 3 { request.namedOrigin = "http://b" }
      queue.append(
        ExchangeQueue.Entry(
          id: ExchangeID(rawValue: UInt64(number)), request: request, receiver: Receiver()))
    }
    queue.append(try entry(4))
    #expect(Set(started(&queue)) == [1, 2, 3])
    leave(&queue, 3)
    #expect(started(&queue).isEmpty)
    leave(&queue, 1)
    #expect(started(&queue) == [4])
  }

  @Test("A quarter of all places is for origins that have few")
  func total() throws {
    var queue = ExchangeQueue(placeCount: 64, totalCount: 64)
    for number in 1...50 { queue.append(try entry(UInt64(number))) }
    #expect(started(&queue).count == 48)
    for number in 51...70 { queue.append(try entry(UInt64(number), at: "http://b/file")) }
    #expect(started(&queue).count == 8)
    for number in 71...90 { queue.append(try entry(UInt64(number), at: "http://c/file")) }
    #expect(started(&queue).count == 8)
    queue.append(try entry(91, at: "http://d/file"))
    #expect(started(&queue).isEmpty)
    // An exchange that found no place because of others is not forgotten.
    leave(&queue, 51)
    #expect(started(&queue).count == 1)
    for number in 1...48 { leave(&queue, UInt64(number)) }
    #expect(started(&queue).count > 20)
  }

  @Test("Where all places are few, one origin may take them")
  func smallTotal() throws {
    var queue = ExchangeQueue(placeCount: 64, totalCount: 4)
    for number in 1...6 { queue.append(try entry(UInt64(number))) }
    #expect(started(&queue) == [1, 2, 3, 4])
    leave(&queue, 2)
    #expect(started(&queue) == [5])
  }

  @Test("Demand comes before read-ahead, and has places that read-ahead does not take")
  func priorities() throws {
    var queue = ExchangeQueue(placeCount: 32)
    for number in 1...40 { queue.append(try entry(UInt64(number), .readAhead)) }
    #expect(started(&queue).count == 30)
    for number in 41...43 { queue.append(try entry(UInt64(number))) }
    #expect(started(&queue) == [41, 42])
    leave(&queue, 41)
    #expect(started(&queue) == [43])
  }

  @Test("Read-ahead that somebody has come to wait for overtakes the rest")
  func raised() throws {
    var queue = ExchangeQueue(placeCount: 1)
    for number in 1...4 { queue.append(try entry(UInt64(number), .readAhead)) }
    #expect(started(&queue) == [1])
    queue.update(ExchangeID(rawValue: 3)) { $0.priority = .demand }
    leave(&queue, 1)
    #expect(started(&queue) == [3])
    leave(&queue, 3)
    #expect(started(&queue) == [2])
  }

  @Test("Who has gone takes no place")
  func removed() throws {
    var queue = ExchangeQueue(placeCount: 1)
    for number in 1...3 { queue.append(try entry(UInt64(number))) }
    #expect(started(&queue) == [1])
    #expect(queue.remove(ExchangeID(rawValue: 2)) != nil)
    #expect(queue.remove(ExchangeID(rawValue: 2)) == nil)
    leave(&queue, 1)
    #expect(started(&queue) == [3])
    queue.append(try entry(4))
    #expect(queue.removeAll().count == 1)
    leave(&queue, 3)
    #expect(started(&queue).isEmpty)
  }

  @Test("Files with a rate limit of their own keep half of the places free for the others")
  func limited() throws {
    var queue = ExchangeQueue(placeCount: 4)
    let limit = RateLimit(bytesPerSecond: 1000)
    for number in 1...4 { queue.append(try entry(UInt64(number), rateLimit: limit)) }
    #expect(started(&queue) == [1, 2])
    for number in 5...6 { queue.append(try entry(UInt64(number))) }
    #expect(started(&queue) == [5, 6])
    leave(&queue, 5)
    #expect(started(&queue).isEmpty)
    leave(&queue, 1)
    #expect(started(&queue) == [3])
    // An exchange that leaves twice counts once.
    leave(&queue, 1)
    #expect(started(&queue).isEmpty)
  }

  @Test("Whatever comes and goes, everybody who stays is started once, and places are kept to")
  func anyOrder() throws {
    var random = SeededGenerator(seed: 1)
    var queue = ExchangeQueue(placeCount: 16)
    var waiting: Set<UInt64> = []
    var running: [String: [ExchangeID]] = [:]
    let limit = RateLimit(bytesPerSecond: 1000)
    var startedCount = 0
    for number in 0..<UInt64(20_000) {
      let origin = ["http://a", "http://b", "https://a:8443"].randomElement(using: &random) ?? ""
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        queue.append(
          try entry(
            number, Bool.random(using: &random) ? .demand : .readAhead, at: "\(origin)/x",
            rateLimit: Bool.random(using: &random) ? limit : nil))
        waiting.insert(number)
      case 5..<8:
        guard let id = running[origin]?.popLast() else { continue }
        queue.leave(id)
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
        running[entry.request.url.normalizedOrigin, default: []].append(entry.id)
        startedCount += 1
      }
      #expect(running.values.allSatisfy { $0.count <= 16 })
    }
    #expect(startedCount > 1000)
    for id in running.values.joined() { queue.leave(id) }
    while let entry = queue.next() {
      waiting.remove(entry.id.rawValue)
      queue.leave(entry.id)
    }
    #expect(waiting.isEmpty)
    #expect(queue.isEmpty)
  }
}
