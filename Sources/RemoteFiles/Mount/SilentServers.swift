internal import Synchronization

/// The servers that have not answered lately, so that a request to them would only cost time.
///
/// Lock order: `silences` is a leaf.
final class SilentServers: Sendable {
  /// Until when servers count as silent, by their origins.
  private let silences = Mutex<[String: ContinuousClock.Instant]>([:])

  /// Records a server that did not answer in time.
  func recordSilence(of origin: String) {
    silences.withLock { $0[origin] = .now + FileSettings.silenceMemory }
  }

  func recordAnswer(of origin: String) {
    silences.withLock { if !$0.isEmpty { $0[origin] = nil } }
  }

  /// Whether `origin` counts as silent now.
  func contains(_ origin: String) -> Bool {
    silences.withLock { silences in
      guard let until = silences[origin] else { return false }
      return ContinuousClock.now < until
    }
  }
}
