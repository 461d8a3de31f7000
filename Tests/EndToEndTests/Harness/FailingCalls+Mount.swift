import Foundation
import Glibc

extension Sandbox {
  /// Mounts a list of `urls` with a daemon whose calls on its cache fail as `failing` specifies.
  ///
  /// - Parameters:
  ///   - urls: the lines of the list.
  ///   - options: further options of `httpfs mount`.
  ///   - failing: the calls on the cache directory, for which it was created.
  /// - Returns: the mount.
  /// - Throws: `HarnessError` if httpfs refuses.
  func mount(urls: [String], options: [String] = [], failing: FailingCalls) throws -> Mount {
    let name = "failing-\(UUID().uuidString)"
    let list = try write(urls.joined(separator: "\n") + "\n", to: "\(name).txt")
    return adopt(
      try Mount(
        source: list, mountpoint: try makeDirectory(name), cacheDirectory: failing.directory,
        options: options, launcher: try failing.launcher))
  }
}

extension Mount {
  /// The cache failure that `.status.json` reports; nil if there is none.
  func cacheFailure() throws -> String? {
    let text = try output(of: enter + ["cat", path(".status.json")], within: .seconds(5))
    let report = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    guard let report, let cache = report["cache"] as? [String: Any] else {
      throw HarnessError(".status.json does not say how the cache is: \(text)")
    }
    return cache["error"] as? String
  }
}
