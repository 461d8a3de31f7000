/// Decides which files of a long list become transfers of a queue next.
///
/// A transfer that waits costs some 8 KiB and a place in everything that looks at all transfers, so
/// only so many exist at once; the rest of a list waits here as numbers. The order of the list is
/// kept, but for hosts that have as many as they can soon need.
package struct TransferBacklog: Sendable {
  /// How many transfers there are at once, waiting and running: four for each that a queue may run.
  package static let limit = 256

  /// The files of one host that wait, or of all where hosts have no limit: the last comes first.
  private struct Line {
    var waiting: [Int]
    var begunCount = 0
  }

  private var lines: [Line]
  /// The line of each file.
  private let lineOfFile: [Int32]
  /// How many files of a line are transfers at a time: more than may run, so that none lacks one.
  private let lineLimit: Int
  private var begunCount = 0
  private var waitingCount: Int

  /// A backlog of all files of a list.
  ///
  /// - Parameters:
  ///   - hosts: the host of each.
  ///   - maximumPerHost: how many of a host the queue runs at a time; nil for no limit.
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

  /// Whether no file waits any more.
  package var isEmpty: Bool { waitingCount == 0 }

  /// The files that are to become transfers now, as numbers from 0.
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

  /// Takes note that the transfer of a file has ended.
  package mutating func end(_ file: Int) {
    let index = lineOfFile.isEmpty ? 0 : Int(lineOfFile[file])
    lines[index].begunCount -= 1
    begunCount -= 1
  }

  /// Gives up what waits; gives its numbers, in the order of the list.
  package mutating func giveUp() -> [Int] {
    defer {
      for index in lines.indices { lines[index].waiting = [] }
      waitingCount = 0
    }
    return lines.flatMap(\.waiting).sorted()
  }
}
