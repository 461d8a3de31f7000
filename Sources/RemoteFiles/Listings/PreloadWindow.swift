/// How far cache entries have been opened for a program that looks up names in order, as `ls -l`
/// does.
///
/// Without it, each name of such a walk waits for the opening of its own cache entry, on another
/// thread.
struct PreloadWindow {
  /// How many names ahead cache entries are opened at most.
  static let distance = 64

  /// The index after the name that was looked up last.
  private var next = 0
  /// The index after the last name that was handed out.
  private var end = 0

  /// Records a lookup of the name at `index` of `count`.
  ///
  /// - Returns: the names whose cache entries to open now; empty unless the previous lookup was of
  ///   the previous name.
  mutating func names(from index: Int, of count: Int) -> Range<Int> {
    let isInOrder = index > 0 && index == next
    next = index + 1
    guard isInOrder else {
      end = next
      return end..<end
    }
    // A new batch begins when half of the distance is left.
    guard end < count, end - index <= Self.distance / 2 else { return end..<end }
    let begin = max(end, index)
    end = min(count, index + Self.distance)
    return begin..<end
  }
}
