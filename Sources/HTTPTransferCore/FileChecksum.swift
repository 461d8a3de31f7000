/// The state of the checksum of one version's whole, and the servers that sent its bytes.
///
/// A value without I/O; each download and each version of a mounted file has one. Servers are
/// identified as in ``MirrorSet``.
package struct FileChecksum: Sendable {
  package enum Progress: Sendable {
    /// The whole has not been hashed since bytes were last stored.
    case pending
    case hashing
    /// The checksum matches.
    case right
    /// The checksum does not match, and no server is left that may have the right file.
    case failed
  }

  package private(set) var progress = Progress.pending
  /// The servers that sent bytes in this mount or run.
  private var contributors: Set<Int> = []
  /// Whether some bytes were there before: their servers are unknown.
  package var hasEarlierBytes = false
  /// How often the whole was wrong without a server to blame.
  private var sharedFailureCount = 0

  package init() {}

  package var isHashing: Bool { progress == .hashing }
  package var isRight: Bool { progress == .right }
  package var hasFailed: Bool { progress == .failed }

  /// Records that bytes from the server `mirror` were stored.
  package mutating func recordStored(from mirror: Int?) {
    if let mirror { contributors.insert(mirror) }
    // A file that is being hashed is complete: no further bytes of it arrive.
    if progress == .right { progress = .pending }
  }

  /// Starts a hash of the complete file.
  ///
  /// - Returns: whether the caller should hash it now.
  package mutating func begin() -> Bool {
    guard progress == .pending else { return false }
    progress = .hashing
    return true
  }

  /// Records that bytes were dropped while the whole was being hashed, or cannot be read.
  package mutating func abandon() { if progress == .hashing { progress = .pending } }

  package mutating func succeed() { progress = .right }

  /// Records that all bytes were dropped, for a reason other than their hash.
  package mutating func forgetBytes() {
    contributors = []
    hasEarlierBytes = false
  }

  /// What to do with a whole that is wrong.
  package enum Remedy: Sendable, Equatable {
    /// Fetch it again; `culprit` is the server that sent all of it, if only one did.
    case refetch(culprit: Int?)
    case giveUp
  }

  /// Records that the whole is wrong and was dropped; `trusted` are the servers not refused.
  package mutating func fail(trusted: [Int]) -> Remedy {
    let culprit = contributors.count == 1 && !hasEarlierBytes ? contributors.first : nil
    forgetBytes()
    if culprit == nil { sharedFailureCount += 1 }
    let hasOthers = trusted.contains { $0 != culprit }
    // Only one server is asked from now on. If others must help each time, the attempts end as
    // well.
    guard hasOthers, sharedFailureCount <= trusted.count else {
      progress = .failed
      return .giveUp
    }
    progress = .pending
    return .refetch(culprit: culprit)
  }
}
