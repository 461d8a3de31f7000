internal import Synchronization

/// The servers that have not answered lately: it would only take time to ask them now.
///
/// Lock order: `silences` is a leaf.
final class SilentServers: Sendable {
  /// Until when servers are taken not to answer, by their origins.
  private let silences = Mutex<[String: ContinuousClock.Instant]>([:])

  /// A server did not answer in time.
  func noteSilence(of origin: String) {
    silences.withLock { $0[origin] = .now + FileSettings.silenceMemory }
  }

  func noteAnswer(of origin: String) {
    silences.withLock { if !$0.isEmpty { $0[origin] = nil } }
  }

  /// Whether it would only take time to ask `origin` now.
  func contains(_ origin: String) -> Bool {
    silences.withLock { silences in
      guard let until = silences[origin] else { return false }
      return ContinuousClock.now < until
    }
  }
}
