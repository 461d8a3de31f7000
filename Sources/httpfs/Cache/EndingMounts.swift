import Glibc
import LinuxSystem
import RangeCache
import TextFormat

/// Opens the cache at `path`; waits while a mount that has been unmounted still stores its bytes.
///
/// `mountpoint` is the mount point that the cache is to serve.
func openCacheDirectory(
  _ path: String, mountpoint: String? = nil
) throws(CacheError) -> CacheDirectory {
  // A process ends within a few seconds of its unmount.
  let deadline = ContinuousClock.now + .seconds(8)
  while true {
    do throws(CacheError) {
      return try CacheDirectory(path: path, mountpoint: mountpoint)
    } catch {
      guard isHeldByEndingMount(error), .now < deadline else { throw error }
      usleep(50_000)
    }
  }
}

/// Whether the process that holds the cache no longer has its mount.
///
/// A mount that is starting looks the same, for a moment.
private func isHeldByEndingMount(_ error: CacheError) -> Bool {
  guard case .inUse(let process, let mountpoint?) = error.code,
    let table = (process.flatMap { try? MountTable.seen(by: $0) }) ?? (try? MountTable.current())
  else { return false }
  return !table.entries.contains { escapingControls($0.mountpoint) == mountpoint }
}
