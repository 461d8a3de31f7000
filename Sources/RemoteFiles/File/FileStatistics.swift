internal import HTTPTransferCore

/// What a file has cost in this mount, for `.status`.
struct FileStatistics: Sendable {
  /// Body bytes off the wire, the dropped ones included.
  var fetchedByteCount: Int64 = 0
  var requestCount = 0
  /// The requests of the last minute.
  var requests = RequestMeter()
  var retryCount = 0
  /// Bytes that the cache held and that were found damaged.
  var damagedByteCount: Int64 = 0
  var lastError: String?
  /// Whether the server could not be asked when it last should have been.
  var isOffline = false
  var speed = SpeedMeter()
}
