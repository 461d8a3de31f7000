internal import TextFormat

/// The state of one file of a mount.
///
/// Counts and speeds are of this mount only; `cachedBytes` counts all that the cache holds.
package struct FileStatus: Sendable, Hashable, Decodable {
  /// The path relative to the mount point.
  package var name: String

  /// The source of the bytes, without userinfo and query secrets.
  package var url: String

  package var state: FileState

  /// The complete length in bytes; nil while unknown.
  package var length: Int64?

  /// How many bytes of the current version are in the cache.
  package var cachedBytes: Int64

  /// How many body bytes were received.
  package var fetchedBytes: Int64

  /// How many bytes of the cache were found damaged; they are fetched again.
  package var damagedBytes: Int64

  /// The current download speed, in bytes per second.
  package var speedBytesPerSecond: Int64

  /// How long the rest will take at this speed, in seconds; nil if unknown.
  package var etaSeconds: Double?

  /// How many connections carry bytes of this file now.
  package var connections: Int

  /// How many requests were sent.
  package var requests: Int

  /// How many requests were sent in the last minute; nil if an older mount does not report it.
  package var requestsLastMinute: Int64?

  /// How many requests repeated a failed one.
  package var retries: Int

  /// The last error in a few words, without secrets; nil if there was no error.
  package var lastError: String?

  /// Identifies this version: `ETag "abc"`, `Last-Modified …`, `unverifiable`; nil before the first
  /// response.
  package var validator: String?

  /// The reads that are waiting now.
  package var waitingReads: [WaitingRead]

  /// The look-up or open that has waited longest; nil if none waits, or an older mount does not
  /// report it.
  package var waitingOpen: WaitingOpen?

  /// Whether reads bypass the daemon: the kernel reads the cache file itself.
  package var passthrough: Bool

  /// Whether its cached bytes are never evicted.
  package var pinned: Bool

  /// The maximum number of bytes per second for this file; nil if only the limit of the whole mount
  /// applies.
  package var rateLimitBytesPerSecond: Int64?

  /// The servers of the file, in the order of the list; nil if the list gives only one URL.
  package var mirrors: [MirrorStatus]?

  package init(
    name: String, url: String, state: FileState, length: Int64? = nil, cachedBytes: Int64 = 0,
    fetchedBytes: Int64 = 0, damagedBytes: Int64 = 0, speedBytesPerSecond: Int64 = 0,
    etaSeconds: Double? = nil,
    connections: Int = 0, requests: Int = 0, retries: Int = 0, lastError: String? = nil,
    validator: String? = nil, waitingReads: [WaitingRead] = [], passthrough: Bool = false,
    pinned: Bool = false
  ) {
    self.name = name
    self.url = url
    self.state = state
    self.length = length
    self.cachedBytes = cachedBytes
    self.fetchedBytes = fetchedBytes
    self.damagedBytes = damagedBytes
    self.speedBytesPerSecond = speedBytesPerSecond
    self.etaSeconds = etaSeconds
    self.connections = connections
    self.requests = requests
    self.retries = retries
    self.lastError = lastError
    self.validator = validator
    self.waitingReads = waitingReads
    self.passthrough = passthrough
    self.pinned = pinned
  }

  /// How much of the file is cached, 0 to 100; nil while the length is unknown.
  ///
  /// 100 only if nothing is missing.
  package var percent: Int? {
    length.map { percentage(of: cachedBytes, in: $0) }
  }

  /// The same as text; nil while the length is unknown.
  package var percentText: String? {
    length.map { TextFormat.percentText(of: cachedBytes, in: $0) }
  }

  enum CodingKeys: String, CodingKey {
    case name, url, state, length
    case cachedBytes = "cached_bytes"
    case fetchedBytes = "fetched_bytes"
    case damagedBytes = "damaged_bytes"
    case speedBytesPerSecond = "speed_bytes_per_second"
    case etaSeconds = "eta_seconds"
    case connections, requests
    case requestsLastMinute = "requests_last_minute"
    case retries
    case lastError = "last_error"
    case validator
    case waitingReads = "waiting_reads"
    case waitingOpen = "waiting_open"
    case passthrough, pinned
    case rateLimitBytesPerSecond = "rate_limit_bytes_per_second"
    case mirrors
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(CodingKeys.name, name)
      writer.member(CodingKeys.url, url)
      writer.member(CodingKeys.state, state.rawValue)
      writer.member(CodingKeys.length, length)
      writer.member(CodingKeys.cachedBytes, cachedBytes)
      writer.member(CodingKeys.fetchedBytes, fetchedBytes)
      writer.member(CodingKeys.damagedBytes, damagedBytes)
      writer.member(CodingKeys.speedBytesPerSecond, speedBytesPerSecond)
      writer.member(CodingKeys.etaSeconds, etaSeconds)
      writer.member(CodingKeys.connections, connections)
      writer.member(CodingKeys.requests, requests)
      writer.member(CodingKeys.requestsLastMinute, requestsLastMinute)
      writer.member(CodingKeys.retries, retries)
      writer.member(CodingKeys.lastError, lastError)
      writer.member(CodingKeys.validator, validator)
      writer.member(CodingKeys.waitingReads) { writer in
        writer.array(waitingReads) { $0.write(to: &$1) }
      }
      writer.member(CodingKeys.waitingOpen) { writer in
        if let waitingOpen { waitingOpen.write(to: &writer) } else { writer.null() }
      }
      writer.member(CodingKeys.passthrough, passthrough)
      writer.member(CodingKeys.pinned, pinned)
      writer.member(CodingKeys.rateLimitBytesPerSecond, rateLimitBytesPerSecond)
      if let mirrors {
        writer.member(CodingKeys.mirrors) { writer in
          writer.array(mirrors) { $0.write(to: &$1) }
        }
      }
    }
  }
}
