/// What is known of the checksum of one version's whole, and of who has brought its bytes.
///
/// A value without I/O, of which a download and a version of a mounted file have one each. Servers are named as
/// in ``MirrorSet``.
public struct WholeCheck: Sendable {
  public enum Progress: Sendable {
    /// The whole has not been hashed since bytes were last stored.
    case pending
    case hashing
    /// It is what the list says.
    case right
    /// It is not, and nobody is left who may have the right one.
    case failed
  }

  public private(set) var progress = Progress.pending
  /// The servers that have brought bytes in this mount or run.
  private var contributors: Set<Int> = []
  /// Whether some of the bytes were there before: then nobody knows who has brought them.
  public var hasEarlierBytes = false
  /// How often the whole was wrong and nobody could be blamed.
  private var sharedFailureCount = 0

  public init() {}

  public var isHashing: Bool { progress == .hashing }
  public var isRight: Bool { progress == .right }
  public var hasFailed: Bool { progress == .failed }

  /// Bytes have been stored, brought by the server `mirror`.
  public mutating func noteStored(from mirror: Int?) {
    if let mirror { contributors.insert(mirror) }
    // What is being hashed is complete: nothing of it comes anew.
    if progress == .right { progress = .pending }
  }

  /// The whole is there.
  ///
  /// - Returns: whether it is to be hashed now.
  public mutating func begin() -> Bool {
    guard progress == .pending else { return false }
    progress = .hashing
    return true
  }

  /// Bytes have gone while the whole was being hashed, or cannot be read.
  public mutating func abandon() { if progress == .hashing { progress = .pending } }

  public mutating func succeed() { progress = .right }

  /// All bytes are gone, for another reason than their hash.
  public mutating func forgetBytes() {
    contributors = []
    hasEarlierBytes = false
  }

  /// What becomes of a whole that is wrong.
  public enum Remedy: Sendable, Equatable {
    /// It is fetched anew; `liar` alone had brought it.
    case refetch(liar: Int?)
    case giveUp
  }

  /// The whole is wrong, and its bytes are dropped; `trusted` are the servers that have not been refused.
  public mutating func fail(trusted: [Int]) -> Remedy {
    let liar = contributors.count == 1 && !hasEarlierBytes ? contributors.first : nil
    forgetBytes()
    if liar == nil { sharedFailureCount += 1 }
    let hasOthers = trusted.contains { $0 != liar }
    // One server alone is asked from now on. Where others must help it out each time, that has an end, too.
    guard hasOthers, sharedFailureCount <= trusted.count else {
      progress = .failed
      return .giveUp
    }
    progress = .pending
    return .refetch(liar: liar)
  }
}
