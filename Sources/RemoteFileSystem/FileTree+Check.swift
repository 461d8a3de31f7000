internal import Dispatch
package import HTTPTransferCore
package import RemoteFiles
internal import Synchronization

extension FileTree {
  /// Why a source cannot be used.
  package struct Failure: Sendable {
    package let url: RemoteURL
    package let error: FileError
  }

  /// Asks the servers of all files and listings of the list, and waits for the answers.
  ///
  /// - Parameter timeout: how long to wait; a server that has not answered by then has not failed.
  /// - Returns: the failures, in the order of the list, listings last.
  package func failures(within timeout: Duration) -> [Failure] {
    environment.setChecking(true)
    defer { environment.setChecking(false) }
    let answers = Answers()
    for (index, source) in sources.enumerated() {
      answers.expect()
      file(index).resolve { result in
        if case .failure(let error) = result { answers.record(error, of: source.url, at: index) }
        answers.arrived()
      }
    }
    for (place, directory) in listedRoots.enumerated() {
      answers.expect()
      let (index, url) = (sources.count + place, directory.source.url)
      directory.names { result in
        if case .failure(let error) = result { answers.record(error, of: url, at: index) }
        answers.arrived()
      }
    }
    return answers.failures(within: timeout)
  }

  /// The answers of servers, as they arrive.
  private final class Answers: Sendable {
    private let group = DispatchGroup()
    private let found = Mutex<[Int: Failure]>([:])

    func expect() { group.enter() }

    func arrived() { group.leave() }

    func record(_ error: FileError, of url: RemoteURL, at index: Int) {
      found.withLock { $0[index] = Failure(url: url, error: error) }
    }

    func failures(within timeout: Duration) -> [Failure] {
      _ = group.wait(timeout: .now() + timeout / .seconds(1))
      return found.withLock { found in found.keys.sorted().compactMap { found[$0] } }
    }
  }
}
