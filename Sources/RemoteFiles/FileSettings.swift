public import DirectoryListing
public import HTTPTransfer

/// What a user can set about reading files.
public struct FileSettings: Sendable {
  /// The connections per file for read-ahead; nil lets each file find its best number.
  public var connections: Int?
  /// The deadline of a read, an open or a lookup.
  public var readTimeout: Duration
  /// How long a confirmation by the server holds before `open` asks again.
  public var revalidationInterval: Duration
  /// How long a response may bring nothing before its range is asked for again elsewhere.
  public var stallTimeout: Duration
  /// How long a directory listing is shown before the server is asked for it again.
  public var listingTimeToLive: Duration
  /// Whether exact lengths and times of a listing are shown until a file is opened.
  public var believesListings = true
  /// What no listing shows.
  public var hiddenNames = HiddenNames()
  /// The most body bytes per second of each file of which its list says nothing else; nil for no limit.
  public var fileRateLimit: Int64?
  /// What makes the URLs that files are asked for at; nil where that is the listed ones.
  public var signer: (any URLSigner)?
  /// How long a connection may take to come up.
  public var connectTimeout = Duration.seconds(10)

  public init(
    connections: Int? = nil, readTimeout: Duration = .seconds(60),
    revalidationInterval: Duration = .seconds(1), stallTimeout: Duration = .seconds(15),
    listingTimeToLive: Duration = .seconds(60)
  ) {
    self.connections = connections
    self.readTimeout = readTimeout
    self.revalidationInterval = revalidationInterval
    self.stallTimeout = stallTimeout
    self.listingTimeToLive = listingTimeToLive
  }

  /// How long a response may bring nothing, head or body, before its range is asked for again: so
  /// that several servers of a host, or several routes to it, are tried before the deadline.
  var responsePatience: Duration {
    min(stallTimeout, max(Self.leastResponsePatience, readTimeout / 4))
  }

  /// How long the disk under the cache may take to open an entry, before a look-up or an open goes on
  /// without.
  var cachePatience: Duration { min(Self.greatestCachePatience, readTimeout / 4) }

  private static let greatestCachePatience = Duration.seconds(5)

  /// Slow servers take that long without being stalled.
  private static let leastResponsePatience = Duration.seconds(1)

  /// The most connections that read-ahead of a file grows to by itself.
  static let adaptiveConnectionLimit = 32

  /// The most requests of one file in flight, demand included.
  static let demandConnectionLimit = 48

  /// What the first request of a file brings: the kernel's first read of most tools, in the round
  /// trip that the length costs anyway.
  static let firstProbeByteCount: Int64 = 16 << 10

  /// A file of a server without ranges is fetched whole by its first probe up to this length.
  static let smallFileByteCount: Int64 = 256 << 10

  /// From how many bytes on reads are not answered by whoever stores the bytes.
  static let leastQueuedReply: Int64 = 64 << 10

  /// How long the open of a file with cached bytes waits for the server's confirmation.
  static let confirmationPatience = Duration.seconds(5)

  /// How long a server must have had to answer before it is taken for a silent one.
  static func silencePatience(_ settings: FileSettings) -> Duration {
    min(confirmationPatience, settings.readTimeout) / 2
  }

  /// How long a server that did not answer in that time is not asked to confirm cached files.
  static let silenceMemory = Duration.seconds(5)

  /// How much of a body that comes as one stream is fetched while nobody has the file open: its
  /// length, where only the end tells it, is worth that much.
  static let unreadStreamByteCount: Int64 = 64 << 20

  /// How long such a stream goes on in any case: a look-up that it answers may lead to an open.
  static let unreadStreamPatience = Duration.seconds(3)

  /// How long a stream that is far ahead of its reader waits for one who has the file open and does not read.
  static let idleStreamPatience = Duration.seconds(20)

  /// How long a lookup waits for the end of a body of unknown length, and with it for the length.
  static let unknownLengthPatience = Duration.seconds(1)

  /// How long a server that cannot be reached is tried before reads fail.
  static let unreachablePatience = Duration.seconds(2)

  /// Up to how many bytes of a complete file are verified by its first open; some 10 ms.
  static let verifiedAtOpenByteCount: Int64 = 64 << 20

  /// From which length on the record of a complete file says that its bytes were looked at, for the next
  /// mount: less is verified in a millisecond.
  static let leastStampedByteCount: Int64 = 1 << 20

  /// How long the end of a mount waits for a file that has just been written to be old enough for that.
  static let stampPatience = Duration.milliseconds(100)

  /// How long the end of a mount waits for checkpoints that have begun.
  static let checkpointPatience = Duration.seconds(5)

  /// How long a failure answers further requests for the same thing: the kernel repeats a failed
  /// read-ahead as single pages, and tools repeat a failed lookup.
  static let failureMemory = Duration.seconds(1)

  /// How long after its last read a reader is taken to be there, and is read ahead for.
  static let readerMemory = Duration.seconds(2)
}
