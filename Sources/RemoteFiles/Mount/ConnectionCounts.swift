internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// How many connections a file starts with: the user's number, or the one that has paid at its
/// host.
///
/// It remembers hosts from this mount and earlier ones.
///
/// Lock order: `hosts` is a leaf.
final class ConnectionCounts: Sendable {
  /// The user's number of connections per file; 0 if each file finds its best number.
  private let setCount: Atomic<Int>
  private let hosts: Mutex<HostMemory>
  private let cache: CacheDirectory
  private let logger: Logger

  init(context: MountContext) {
    cache = context.cache
    logger = context.logger
    setCount = Atomic(context.settings.connections ?? 0)
    hosts = Mutex(HostMemory(text: context.cache.note(CacheDirectory.hostsName) ?? ""))
  }

  /// The connections per file, for read-ahead; nil if each file finds its best number.
  var perFile: Int? {
    let count = setCount.load(ordering: .relaxed)
    return count == 0 ? nil : count
  }

  func set(_ count: Int?) { setCount.store(count ?? 0, ordering: .relaxed) }

  /// How many connections have paid at the host of `url`, if each file finds its best number.
  func learned(for url: RemoteURL) -> Int? {
    guard perFile == nil else { return nil }
    let (origin, today) = (url.normalizedOrigin, daysSinceEpoch())
    return hosts.withLock { $0.connections(for: origin, today: today) }
  }

  /// Records that `count` connections have paid at the host of `url`.
  func note(_ count: Int, for url: RemoteURL) {
    guard perFile == nil else { return }
    hosts.withLock { $0.note(count, for: url.normalizedOrigin, today: daysSinceEpoch()) }
  }

  /// Stores what was learned about hosts, for the next mount.
  func store() {
    let text = hosts.withLock { $0.text }
    guard text != cache.note(CacheDirectory.hostsName) ?? "" else { return }
    do throws(CacheError) {
      try cache.storeNote(text, CacheDirectory.hostsName)
    } catch {
      logger.debug("what was learned of hosts is not kept", metadata: ["error": "\(error)"])
    }
  }
}
