import HTTPTransfer
import Testing

/// The choice of the next files of a long list that become transfers.
@Suite struct TransferBacklogTests {
  @Test("A long list is begun in its order, a bounded part of it at a time")
  func inOrder() {
    var backlog = TransferBacklog(
      hosts: Array(repeating: "h", count: 1000), maximumPerHost: nil)
    let first = backlog.begin()
    #expect(first == Array(0..<TransferBacklog.limit))
    #expect(backlog.begin() == [])
    backlog.end(7)
    backlog.end(3)
    #expect(backlog.begin() == [TransferBacklog.limit, TransferBacklog.limit + 1])
    #expect(!backlog.isEmpty)
  }

  @Test("Each file is begun once, whatever the limits", arguments: [nil, 1, 3, 64, Int.max])
  func once(maximumPerHost: Int?) {
    let hosts = (0..<2000).map { "h\($0 * $0 % 37)" }
    var backlog = TransferBacklog(hosts: hosts, maximumPerHost: maximumPerHost)
    var begun: [Int] = []
    while !backlog.isEmpty {
      let files = backlog.begin()
      #expect(!files.isEmpty && files.count <= TransferBacklog.limit)
      begun += files
      for file in files { backlog.end(file) }
    }
    #expect(begun.sorted() == Array(hosts.indices))
  }

  @Test("With a limit for each host a slow host does not keep others waiting")
  func hosts() {
    let hosts = Array(repeating: "slow", count: 1000) + Array(repeating: "fast", count: 10)
    var backlog = TransferBacklog(hosts: hosts, maximumPerHost: 2)
    #expect(backlog.begin() == Array(0..<8) + Array(1000..<1008))
    backlog.end(1003)
    #expect(backlog.begin() == [1008])
    backlog.end(0)
    #expect(backlog.begin() == [8])
  }

  @Test("What is given up is what has not begun")
  func givenUp() {
    var backlog = TransferBacklog(
      hosts: Array(repeating: "h", count: TransferBacklog.limit + 3), maximumPerHost: nil)
    _ = backlog.begin()
    #expect(backlog.giveUp() == (0..<3).map { TransferBacklog.limit + $0 })
    #expect(backlog.isEmpty)
    #expect(backlog.begin() == [])
    for file in 0..<TransferBacklog.limit { backlog.end(file) }
    #expect(backlog.begin() == [])
  }
}
