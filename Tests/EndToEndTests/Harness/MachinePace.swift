import Testing

/// How slow this machine is at the moment, by something that is not httpfs.
enum MachinePace {
  /// Whether `duration` keeps a bound of time, which a machine that is slow may stretch: by ten
  /// times what a process takes to start and to end now, and to twice its length at most.
  static func keeps(_ duration: Duration, within limit: Duration) throws -> Bool {
    if duration <= limit { return true }
    let durations = try (0..<5).map { _ in try run(["true"]).duration }
    let allowance = min(limit, (durations.max() ?? .zero) * 10)
    return duration <= limit + allowance
  }

  /// Runs a command several times and expects that it is quick: within 100 ms by the median, since
  /// a process that starts on a busy machine may wait for a processor, and within a second, as the
  /// machine's pace allows, at worst.
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
