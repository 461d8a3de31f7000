internal import Synchronization

/// The files of a directory that a walk asks about, one after the other.
///
/// They are created as they are taken: there may be a hundred thousand, and the walk may stop at
/// the first.
package final class FileWalk: Sendable {
  private let count: Int
  private let file: @Sendable (Int) -> RemoteFile?
  private let position = Atomic<Int>(0)

  /// Creates a walk.
  ///
  /// - Parameters:
  ///   - count: how many names there are.
  ///   - file: the file at an index; nil if the walk skips it.
  package init(count: Int, file: @escaping @Sendable (Int) -> RemoteFile?) {
    self.count = count
    self.file = file
  }

  /// What a step of the walk has found.
  package enum Step: Sendable {
    case file(RemoteFile)
    /// Only names that the walk skips; there are more.
    case skipped
    case ended
  }

  /// The maximum number of names that a step skips: a step may run on the network thread.
  private static let skippedCount = 64

  /// Goes on to the next file.
  package func next() -> Step {
    for _ in 0..<Self.skippedCount {
      let index = position.add(1, ordering: .relaxed).oldValue
      guard index < count else { return .ended }
      if let file = file(index) { return .file(file) }
    }
    return .skipped
  }
}
