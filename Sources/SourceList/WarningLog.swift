/// Warnings, one per topic: an option that a generated list repeats for each URL gets one line, not
/// a hundred thousand.
struct WarningLog {
  /// The maximum number of topics; warnings about other topics are only counted.
  private static let maximumTopicCount = 100

  private struct Warning {
    let message: String
    let line: Int
    var repeatCount = 0
  }

  private var warnings: [Warning] = []
  private var indexByTopic: [String: Int] = [:]
  private var droppedCount = 0

  mutating func add(_ message: String, about topic: String, line: Int) {
    if let index = indexByTopic[topic] {
      warnings[index].repeatCount += 1
    } else if warnings.count == Self.maximumTopicCount {
      droppedCount += 1
    } else {
      indexByTopic[topic] = warnings.count
      warnings.append(Warning(message: message, line: line))
    }
  }

  /// The warnings in the order of their first lines.
  func diagnostics(sourceName: String) -> [SourceDiagnostic] {
    var diagnostics = warnings.map { warning in
      SourceDiagnostic(
        sourceName: sourceName, line: warning.line,
        message: warning.repeatCount == 0
          ? warning.message
          : "\(warning.message) (and \(warning.repeatCount) more)")
    }
    if droppedCount > 0 {
      diagnostics.append(
        SourceDiagnostic(
          sourceName: sourceName, line: nil, message: "and \(droppedCount) more warnings"))
    }
    return diagnostics
  }
}
