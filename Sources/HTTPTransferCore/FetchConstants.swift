/// Constants that apply to mounted files and downloads alike.
package enum FetchConstants {
  /// How many stored bytes end a series of failures in a download of `byteCount` bytes.
  ///
  /// If one byte were enough, a server that stalls after some bytes each time could keep a download
  /// waiting for hours.
  package static func progressByteCount(of byteCount: Int64) -> Int64 {
    max(1, min(64 << 10, byteCount / 100))
  }

  /// How long the network may be down before the operation on a file fails.
  package static let disconnectionTimeout = Duration.seconds(60)

  /// How often to check whether the network is back; the check sends no packet.
  package static let disconnectionInterval = Duration.milliseconds(500)

  /// How long a rate limit counts as the bottleneck of a file after it has delayed a request.
  package static let throttleMemory = Duration.seconds(1)

  /// How often to repeat a request whose answer has a modification date that proves nothing yet.
  ///
  /// The second repetition covers a clock that lags. A file that changes all the time has no better
  /// date.
  package static let freshAnswerLimit = 2

  /// The delay before the repetition: a second later the same date proves the bytes equal, or there
  /// is another date.
  package static let freshAnswerDelay = Duration.seconds(1)

  /// How many first answers that look like a stand-in are rejected.
  package static let doubtfulAnswerLimit = 2

  /// The assumed time from request to response before the first response, in seconds.
  package static let firstRoundTrip = 0.05

  /// How long bytes must have arrived before their rate is meaningful, in seconds.
  package static let minimumRateInterval = 0.02

  /// Fewer bytes count as progress only at the end of a request: otherwise a trickle would never be
  /// abandoned.
  package static let minimumProgress: Int64 = 1024
}
