/// Selects which files of a long list become transfers of a queue next.
///
/// A waiting transfer costs some 8 KiB and time in each scan of all transfers, so their number is
/// limited; the other files of the list wait here as numbers. The order of the list is kept, except
/// for hosts that have as many transfers as they can soon use.
package struct TransferBacklog: Sendable {
  /// The maximum number of transfers, waiting and running: four for each that a queue may run.
  package static let limit = 256

  /// The waiting files of one host, or of all hosts if hosts have no limit; the last is the next.
  private struct Line {
    var waiting: [Int]
    var begunCount = 0
  }

  private var lines: [Line]
  /// The index in `lines` for each file.
  private let lineOfFile: [Int32]
  /// How many files of a host are transfers at a time: more than may run, so a slot never waits.
  private let lineLimit: Int
  private var begunCount = 0
  private var waitingCount: Int

  /// Creates a backlog of all files of a list.
  ///
  /// - Parameters:
  ///   - hosts: the host of each file.
  ///   - maximumPerHost: how many transfers of a host the queue runs at a time; nil for no limit.
  package init(hosts: some Collection<String>, maximumPerHost: Int?) {
    waitingCount = hosts.count
    guard let maximumPerHost else {
      lines = [Line(waiting: Array((0..<hosts.count).reversed()))]
      lineOfFile = []
      lineLimit = Self.limit
      return
    }
    lineLimit = 4 * min(max(1, maximumPerHost), Self.limit / 4)
    var numbers: [String: Int32] = [:]
    var waiting: [[Int]] = []
    lineOfFile = hosts.enumerated().map { file, host in
      let number = numbers[host] ?? Int32(waiting.count)
      if Int(number) == waiting.count {
        numbers[host] = number
        waiting.append([])
      }
      waiting[Int(number)].append(file)
      return number
    }
    lines = waiting.map { Line(waiting: $0.reversed()) }
  }

  /// Whether no file is waiting.
  package var isEmpty: Bool { waitingCount == 0 }

  /// The files that should become transfers now, as numbers from 0.
  package mutating func begin() -> [Int] {
    var begun: [Int] = []
    guard waitingCount > 0 else { return begun }
    for index in lines.indices {
      while begunCount < Self.limit, lines[index].begunCount < lineLimit,
        let file = lines[index].waiting.popLast()
      {
        lines[index].begunCount += 1
        begunCount += 1
        begun.append(file)
      }
      if begunCount == Self.limit { break }
    }
    waitingCount -= begun.count
    return begun
  }

  /// Records that the transfer of a file has ended.
  package mutating func end(_ file: Int) {
    let index = lineOfFile.isEmpty ? 0 : Int(lineOfFile[file])
    lines[index].begunCount -= 1
    begunCount -= 1
  }

  /// Drops the waiting files; returns their numbers, in the order of the list.
  package mutating func giveUp() -> [Int] {
    defer {
      for index in lines.indices { lines[index].waiting = [] }
      waitingCount = 0
    }
    return lines.flatMap(\.waiting).sorted()
  }
}
