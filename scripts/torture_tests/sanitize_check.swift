// Makes mistakes that a sanitizer must report, and correct accesses that it must not report.
//
// scripts/torture sanitize runs this first, because a blind sanitizer reports nothing.
//
// Usage: sanitize_check clean|address|thread
import Glibc
import Synchronization

final class Counters: @unchecked Sendable {
  let guarded = Mutex(0)
  /// Changed only under `guarded`'s lock.
  var alsoGuarded = 0
  /// Changed by two threads without synchronization.
  var unguarded = 0
}

let counters = Counters()
let mistake = CommandLine.arguments.last

/// The work of each thread, long enough for the lock's slow path, which is used on contention.
func count(_: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  for _ in 0..<50_000 {
    counters.guarded.withLock { number in
      number += 1
      counters.alsoGuarded += 1
    }
    if mistake == "thread" { counters.unguarded += 1 }
  }
  return nil
}

@main
enum SanitizeCheck {
  static func main() {
    var threads = [pthread_t(), pthread_t()]
    for index in threads.indices { pthread_create(&threads[index], nil, count, nil) }
    for thread in threads { pthread_join(thread, nil) }
    guard mistake == "address" else { return }
    let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: 16)
    bytes.initialize(repeating: 1, count: 16)
    bytes.deallocate()
    print(bytes[3])
  }
}
