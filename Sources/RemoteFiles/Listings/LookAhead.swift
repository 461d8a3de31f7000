/// How far the cache has been looked into for a program that looks up the names of a directory in
/// order, as `ls -l` does.
///
/// Without it, each name of such a walk waits for a look of its own, on another thread.
struct LookAhead {
  /// How many names ahead the looks are at most.
  static let distance = 64

  /// The name behind the one that was looked up last.
  private var next = 0
  /// The name behind the last one that was handed out.
  private var end = 0

  /// Takes note that the name at `index` of `count` is looked up.
  ///
  /// - Returns: the names to look into the cache for now; empty unless the lookup before was of the
  ///   name before.
  mutating func names(from index: Int, of count: Int) -> Range<Int> {
    let isInOrder = index > 0 && index == next
    next = index + 1
    guard isInOrder else {
      end = next
      return end..<end
    }
    // Half of the distance is left while the other half is looked into.
    guard end < count, end - index <= Self.distance / 2 else { return end..<end }
    let begin = max(end, index)
    end = min(count, index + Self.distance)
    return begin..<end
  }
}
