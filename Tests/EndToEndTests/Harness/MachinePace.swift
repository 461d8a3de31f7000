import Testing

/// The current slowness of this machine, measured independently of httpfs.
enum MachinePace {
  /// Whether `duration` is within a time limit that a slow machine may extend.
  ///
  /// The extension is ten times the current start and end of a process, at most the limit itself.
  static func keeps(_ duration: Duration, within limit: Duration) throws -> Bool {
    if duration <= limit { return true }
    let durations = try (0..<5).map { _ in try run(["true"]).duration }
    let allowance = min(limit, (durations.max() ?? .zero) * 10)
    return duration <= limit + allowance
  }

  /// Runs a command several times and expects it to be quick.
  ///
  /// The median must be within 100 ms, because a process that starts on a busy machine may wait for
  /// a processor. Each run must be within a second, as extended for the machine's pace.
  ///
  /// - Returns: the median.
  @discardableResult
  static func expectQuick(
    _ command: [String], times count: Int, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Duration {
    let durations = try (0..<count).map { _ in
      let result = try run(command, within: .seconds(20))
      #expect(
        result.succeeded, "\(result.commandLine): \(result.error)",
        sourceLocation: sourceLocation)
      return result.duration
    }.sorted()
    let median = durations[count / 2]
    #expect(
      median <= .milliseconds(100), "\(command): \(durations)", sourceLocation: sourceLocation)
    let isQuickAtWorst = try keeps(durations[count - 1], within: .seconds(1))
    #expect(isQuickAtWorst, "\(command): \(durations)", sourceLocation: sourceLocation)
    return median
  }
}
