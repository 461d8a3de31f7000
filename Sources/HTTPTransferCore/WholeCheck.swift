/// The state of the checksum of one version's whole, and the servers that sent its bytes.
///
/// A value without I/O; each download and each version of a mounted file has one. Servers are
/// identified as in ``MirrorSet``.
public struct WholeCheck: Sendable {
  public enum Progress: Sendable {
    /// The whole has not been hashed since bytes were last stored.
    case pending
    case hashing
    /// The checksum matches.
    case right
    /// The checksum does not match, and no server is left that may have the right file.
    case failed
  }

  public private(set) var progress = Progress.pending
  /// The servers that sent bytes in this mount or run.
  private var contributors: Set<Int> = []
  /// Whether some bytes were there before: their servers are unknown.
  public var hasEarlierBytes = false
  /// How often the whole was wrong without a server to blame.
  private var sharedFailureCount = 0

  public init() {}

  public var isHashing: Bool { progress == .hashing }
  public var isRight: Bool { progress == .right }
  public var hasFailed: Bool { progress == .failed }

  /// Records that bytes from the server `mirror` were stored.
  public mutating func noteStored(from mirror: Int?) {
    if let mirror { contributors.insert(mirror) }
    // A file that is being hashed is complete: no further bytes of it arrive.
    if progress == .right { progress = .pending }
  }

  /// Starts a hash of the complete file.
  ///
  /// - Returns: whether the caller should hash it now.
  public mutating func begin() -> Bool {
    guard progress == .pending else { return false }
    progress = .hashing
    return true
  }

  /// Records that bytes were dropped while the whole was being hashed, or cannot be read.
  public mutating func abandon() { if progress == .hashing { progress = .pending } }

  public mutating func succeed() { progress = .right }

  /// Records that all bytes were dropped, for a reason other than their hash.
  public mutating func forgetBytes() {
    contributors = []
    hasEarlierBytes = false
  }

  /// What to do with a whole that is wrong.
  public enum Remedy: Sendable, Equatable {
    /// Fetch it again; `liar` is the server that sent all of it, if only one did.
    case refetch(liar: Int?)
    case giveUp
  }

  /// Records that the whole is wrong and was dropped; `trusted` are the servers not refused.
  public mutating func fail(trusted: [Int]) -> Remedy {
    let liar = contributors.count == 1 && !hasEarlierBytes ? contributors.first : nil
    forgetBytes()
    if liar == nil { sharedFailureCount += 1 }
    let hasOthers = trusted.contains { $0 != liar }
    // Only one server is asked from now on. If others must help each time, the attempts end as
    // well.
    guard hasOthers, sharedFailureCount <= trusted.count else {
      progress = .failed
      return .giveUp
    }
    progress = .pending
    return .refetch(liar: liar)
  }
}
