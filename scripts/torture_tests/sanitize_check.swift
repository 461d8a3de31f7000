// Does wrong what a sanitizer must report, and right what it must not: scripts/torture sanitize runs this first,
// since a sanitizer that sees nothing reports nothing.
//
// Usage: sanitize_check clean|address|thread
import Glibc
import Synchronization

final class Counters: @unchecked Sendable {
  let guarded = Mutex(0)
  /// Changed under `guarded`'s lock only.
  var alsoGuarded = 0
  /// Changed by two threads with nothing between them.
  var unguarded = 0
}

let counters = Counters()
let mistake = CommandLine.arguments.last

/// What each thread does: often enough for the lock's slow path, which is taken where they meet.
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
