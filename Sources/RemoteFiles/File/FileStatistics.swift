internal import HTTPTransferCore

/// What a file has cost in this mount, for `.status`.
struct FileStatistics: Sendable {
  /// Body bytes off the wire, including dropped ones.
  var fetchedByteCount: Int64 = 0
  var requestCount = 0
  /// The requests of the last minute.
  var requests = RequestMeter()
  var retryCount = 0
  /// Cached bytes that were found damaged.
  var damagedByteCount: Int64 = 0
  var lastError: String?
  /// Whether the last attempt to ask the server failed.
  var isOffline = false
  var speed = SpeedMeter()
}
