import ExtentRecord
import Synchronization

/// The recording of each key that has a live entry object.
final class RecordLeases: Sendable {
  private let current = Mutex<[CacheKey: RecordLease]>([:])

  /// Gives a new entry object the right to record under `key`.
  func begin(_ key: CacheKey) -> RecordLease {
    let recording = RecordLease()
    current.withLock { current in
      current[key]?.end()
      current[key] = recording
    }
    return recording
  }

  /// Ends the recording of the object that records under `key`, if any.
  func end(_ key: CacheKey) {
    current.withLock { $0.removeValue(forKey: key)?.end() }
  }

  /// Removes the recording of an entry object that is released.
  func remove(_ recording: RecordLease, of key: CacheKey) {
    current.withLock { current in
      if current[key] === recording { current[key] = nil }
    }
  }
}
