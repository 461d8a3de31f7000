/// What is known of the checksum of one version's whole, and of who has brought its bytes.
///
/// A value without I/O.
struct WholeCheck: Sendable {
  enum Progress: Sendable {
    /// The whole has not been hashed since bytes were last stored.
    case pending
    case hashing
    /// It is what the list says.
    case right
    /// It is not, and nobody is left who may have the right one.
    case failed
  }

  private(set) var progress = Progress.pending
  /// The servers that have brought bytes in this mount.
  private(set) var contributors: Set<Int> = []
  /// Whether some of the bytes were there before: then nobody knows who has brought them.
  var hasEarlierBytes = false
  /// How often the whole was wrong.
  private var failureCount = 0

  var isHashing: Bool { progress == .hashing }
  var isRight: Bool { progress == .right }
  var hasFailed: Bool { progress == .failed }

  /// Bytes have been stored, brought by the server `mirror`.
  mutating func noteStored(from mirror: Int?) {
    if let mirror { contributors.insert(mirror) }
    // What is being hashed is complete: nothing of it comes anew.
    if progress == .right { progress = .pending }
  }

  /// The whole is there.
  ///
  /// - Returns: whether it is to be hashed now.
  mutating func begin() -> Bool {
    guard progress == .pending else { return false }
    progress = .hashing
    return true
  }

  /// Bytes have gone while the whole was being hashed, or cannot be read.
  mutating func abandon() { if progress == .hashing { progress = .pending } }

  mutating func succeed() { progress = .right }

  /// What becomes of a whole that is wrong.
  enum Remedy: Sendable, Equatable {
    /// It is fetched anew; `liar` alone had brought it.
    case refetch(liar: Int?)
    case giveUp
  }

  /// The whole is wrong, and its bytes are dropped; `trusted` are the servers that have not been refused.
  mutating func fail(trusted: [Int]) -> Remedy {
    let liar = contributors.count == 1 && !hasEarlierBytes ? contributors.first : nil
    failureCount += 1
    contributors = []
    hasEarlierBytes = false
    let others = trusted.filter { $0 != liar }
    // Each time but the first is to rule a server out.
    guard !others.isEmpty, liar != nil || failureCount == 1 else {
      progress = .failed
      return .giveUp
    }
    progress = .pending
    return .refetch(liar: liar)
  }
}
