/// The content of `.status.json`, read by its documented names (docs/STATUS.md).
///
/// The reader uses none of the product's code, so the tests notice when the schema changes.
struct MountStatusFile: Decodable {
  struct File: Decodable {
    let name: String
    let url: String
    let state: String
    let length: Int64?
    let cachedByteCount: Int64
    let fetchedByteCount: Int64
    let connections: Int
    let requests: Int
    let requestsLastMinute: Int?
    let retries: Int
    let lastError: String?
    let validator: String?
    let waitingReads: [WaitingRead]
    let waitingOpen: WaitingOpen?
    let passthrough: Bool
    let damagedByteCount: Int64
    let pinned: Bool
    let mirrors: [Mirror]?
    let rateLimit: Int64?

    enum CodingKeys: String, CodingKey {
      case name, url, state, length, connections, requests, retries, validator, passthrough, pinned
      case mirrors
      case requestsLastMinute = "requests_last_minute"
      case rateLimit = "rate_limit_bytes_per_second"
      case damagedByteCount = "damaged_bytes"
      case cachedByteCount = "cached_bytes"
      case fetchedByteCount = "fetched_bytes"
      case lastError = "last_error"
      case waitingReads = "waiting_reads"
      case waitingOpen = "waiting_open"
    }
  }

  struct Mirror: Decodable {
    let url: String
    let state: String
    let reason: String?
  }

  struct WaitingRead: Decodable {
    let offset: Int64
    let byteCount: Int64
    let waitedSeconds: Double
    let reason: String

    enum CodingKeys: String, CodingKey {
      case offset, reason
      case byteCount = "byte_count"
      case waitedSeconds = "waited_seconds"
    }
  }

  struct WaitingOpen: Decodable {
    let waitedSeconds: Double
    let reason: String

    enum CodingKeys: String, CodingKey {
      case reason
      case waitedSeconds = "waited_seconds"
    }
  }

  struct FailedListing: Decodable {
    let directory: String
    let url: String
    let reason: String
    let showsEarlierNames: Bool

    enum CodingKeys: String, CodingKey {
      case directory, url, reason
      case showsEarlierNames = "shows_earlier_names"
    }
  }

  let version: Int
  let mountpoint: String
  let uptimeSeconds: Double
  let rateLimit: Int64?
  let kernel: Kernel
  let failedListings: [FailedListing]
  let files: [File]

  struct Kernel: Decodable {
    let openHandles: Int

    enum CodingKeys: String, CodingKey {
      case openHandles = "open_handles"
    }
  }

  enum CodingKeys: String, CodingKey {
    case version, mountpoint, kernel, files
    case uptimeSeconds = "uptime_seconds"
    case rateLimit = "rate_limit_bytes_per_second"
    case failedListings = "failed_listings"
  }
}
