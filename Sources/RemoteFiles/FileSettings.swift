package import DirectoryListing
package import HTTPTransfer

/// The settings for reading files.
package struct FileSettings: Sendable {
  /// The connections per file for read-ahead; nil lets each file find its best number.
  package var connections: Int?
  /// The deadline of a read, an open or a lookup.
  package var readTimeout: Duration
  /// How long a lookup or open waits for a server that cannot be reached and has never answered for
  /// the file.
  package var firstAnswerTimeout = Duration.seconds(5)
  /// How long a server must be unreachable before reads of its files fail without waiting.
  package var outageTimeout = Duration.seconds(60)
  /// How long a confirmation by the server holds before `open` asks again.
  package var revalidationInterval: Duration
  /// How long a response may stall before its range is requested again elsewhere.
  package var stallTimeout: Duration
  /// How long a directory listing is shown before the server is asked again.
  package var listingTimeToLive: Duration
  /// Whether exact lengths and times of a listing are shown until a file is opened.
  package var believesListings = true
  /// The names that no listing shows.
  package var hiddenNames = HiddenNames()
  /// The most body bytes per second of each file whose list entry sets no limit; nil for no limit.
  package var fileRateLimit: Int64?
  /// Makes the URLs for the requests; nil if the listed URLs are used.
  package var signer: (any URLSigner)?
  /// The time limit for establishing a connection.
  package var connectTimeout = Duration.seconds(10)

  package init(
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

  /// How long a response may stall, in head or body, before its range is requested again.
  ///
  /// The time is short enough to try several servers of a host, or several routes to it, before the
  /// deadline.
  var responseTimeout: Duration {
    min(stallTimeout, max(Self.minimumResponseTimeout, readTimeout / 4))
  }

  /// How long the disk under the cache may take to open an entry before a lookup or an open
  /// continues without it.
  var cacheTimeout: Duration { min(Self.maximumCacheTimeout, readTimeout / 4) }

  private static let maximumCacheTimeout = Duration.seconds(5)

  /// A slow server may take that long without being stalled.
  private static let minimumResponseTimeout = Duration.seconds(1)

  /// The most connections to which read-ahead of a file grows unless the user sets a number.
  static let adaptiveConnectionLimit = 32

  /// The most requests of one file in flight, demand included.
  static let demandConnectionLimit = 48

  /// How many bytes the first request of a file brings: the kernel's first read of most tools, in
  /// the round trip that the length costs anyway.
  static let firstProbeByteCount: Int64 = 16 << 10

  /// A file of a server without ranges is fetched whole by its first probe up to this length.
  static let smallFileByteCount: Int64 = 256 << 10

  /// A queue sends replies of at least this size, not the thread that stores the bytes.
  static let minimumQueuedReply: Int64 = 64 << 10

  /// How long the open of a file with cached bytes waits for the server's confirmation.
  static let confirmationTimeout = Duration.seconds(5)

  /// How long a server must have had to answer before it counts as silent.
  static func silenceTimeout(_ settings: FileSettings) -> Duration {
    min(confirmationTimeout, settings.readTimeout) / 2
  }

  /// How long a server that did not answer in that time is not asked to confirm cached files.
  static let silenceMemory = Duration.seconds(5)

  /// How much of a body of one stream is fetched while no handle has the file open.
  ///
  /// The length is worth that many bytes if only the end of the body tells it.
  static let unreadStreamByteCount: Int64 = 64 << 20

  /// How long such a stream continues in any case: a lookup that it answers may lead to an open.
  static let unreadStreamTimeout = Duration.seconds(3)

  /// How long a paused stream far ahead of its reader is kept while the file is open but not read.
  static let idleStreamTimeout = Duration.seconds(20)

  /// How long a lookup waits for the end of a body of unknown length, and with it for the length.
  static let unknownLengthTimeout = Duration.seconds(1)

  /// The longest delay before a request to an unreachable server is repeated; such a request costs
  /// little.
  static let unreachableRetryInterval = Duration.seconds(1)

  /// A complete file up to this size is verified at its first open, which takes about 10 ms.
  static let verifiedAtOpenByteCount: Int64 = 64 << 20

  /// Complete files of at least this size get a stamp, so that the next mount need not verify them.
  ///
  /// Smaller ones are verified in a millisecond.
  static let minimumStampedByteCount: Int64 = 1 << 20

  /// How long the end of a mount waits until a file that was just written is old enough for a
  /// stamp.
  static let stampTimeout = Duration.milliseconds(100)

  /// How long the end of a mount waits for running checkpoints.
  static let checkpointTimeout = Duration.seconds(5)

  /// How long a failure answers further requests for the same thing: the kernel repeats a failed
  /// read-ahead as single pages, and tools repeat a failed lookup.
  static let failureMemory = Duration.seconds(1)

  /// How long after its last read a reader counts as active, and is read ahead for.
  static let readerMemory = Duration.seconds(2)
}
