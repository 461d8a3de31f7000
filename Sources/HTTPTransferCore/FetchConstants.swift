/// What holds for the files of a mount and for downloads alike.
package enum FetchConstants {
  /// How long a network may be down under a file before that is a failure.
  package static let disconnectionPatience = Duration.seconds(60)

  /// How often it is looked whether a network is back, which costs nothing: no packet leaves the
  /// machine.
  package static let disconnectionInterval = Duration.milliseconds(500)

  /// How long after a rate limit has held a request back it is taken to be what limits the file.
  package static let throttleMemory = Duration.seconds(1)

  /// How often an answer whose modification date proves nothing yet is asked for again: once more
  /// for a clock that lags; a file that is always just modified has no better date.
  package static let freshAnswerLimit = 2

  /// A second later the same date proves the bytes equal, or there is another one.
  package static let freshAnswerDelay = Duration.seconds(1)

  /// How often a first answer that looks like a stand-in is not believed.
  package static let doubtfulAnswerLimit = 2

  /// The time from request to response that is assumed before the first response, in seconds.
  package static let firstRoundTrip = 0.05

  /// For how long bytes must have come before their rate means something, in seconds.
  package static let leastRateInterval = 0.02
}
