/// One file of a download or upload at one moment, as the display shows it.
package struct DisplayItem: Sendable, Equatable, Identifiable {
  /// What is happening to the file.
  package enum State: Sendable, Equatable {
    /// Not started: other files are before it.
    case queued
    /// Connecting, or waiting for the head of the response.
    case connecting
    /// Bytes flow.
    case running
    /// Continues automatically later, for example after a retry's backoff.
    ///
    /// The reason must not contain anything that changes continuously, such as a countdown, because
    /// each new reason is reported as an event.
    case waiting(reason: String)
    /// Continues when it is resumed.
    case paused
    case finished
    /// Ended with an error, described in words.
    case failed(String)
    /// Ended on request.
    case cancelled

    /// Whether nothing more will happen.
    package var isSettled: Bool {
      switch self {
      case .finished, .failed, .cancelled: true
      case .queued, .connecting, .running, .waiting, .paused: false
      }
    }
  }

  /// Identifies the item in every snapshot of the run.
  package let id: Int

  /// The last component or components of the destination, or of the source for an upload.
  ///
  /// It may contain any characters; those that would disturb a terminal are escaped on display.
  package var name: String

  /// The remote URL, without credentials; nil if it is not shown.
  package var url: String?

  /// The URL of the mirror that answered, without credentials; nil for a file without mirrors.
  package var mirror: String?

  package var state: State

  /// The bytes that have arrived (at the server, for an upload), including those of an earlier run.
  package var transferredByteCount: Int64

  /// The bytes of an earlier run, which were not transferred again.
  package var resumedByteCount: Int64

  /// The length of the whole file; nil when unknown.
  package var totalByteCount: Int64?

  /// The speed now; 0 when nothing flows.
  package var bytesPerSecond: Double

  /// The expected seconds until the end; nil when unknown.
  package var timeLeft: Double?

  /// The seconds since the item began in this run, or its total time.
  package var elapsed: Double

  /// The number of connections in use.
  package var connections: Int

  /// The kind of the error that ended it, as a word for programs; nil if none did.
  package var errorCode: String?

  /// The HTTP status that caused the error; nil if none did.
  package var httpStatus: Int?

  /// Whether it finished because the local file already matches the server's.
  package var isUnchanged = false

  package init(
    id: Int, name: String, url: String? = nil, state: State = .queued,
    transferredByteCount: Int64 = 0, resumedByteCount: Int64 = 0, totalByteCount: Int64? = nil,
    bytesPerSecond: Double = 0, timeLeft: Double? = nil, elapsed: Double = 0, connections: Int = 0
  ) {
    self.id = id
    self.name = name
    self.url = url
    self.state = state
    self.transferredByteCount = transferredByteCount
    self.resumedByteCount = resumedByteCount
    self.totalByteCount = totalByteCount
    self.bytesPerSecond = bytesPerSecond
    self.timeLeft = timeLeft
    self.elapsed = elapsed
    self.connections = connections
  }

  /// How much is done, 0 to 100, rounded down; 100 only when finished, nil for an unknown length.
  package var percent: Int? {
    if state == .finished { return 100 }
    return totalByteCount.map { unfinishedPercentage(of: transferredByteCount, in: $0) }
  }

  /// The bytes that this run transferred.
  package var newByteCount: Int64 {
    max(0, transferredByteCount.subtractingReportingOverflow(resumedByteCount).partialValue)
  }
}
