/// A fault of a file's server.
enum ModelFault: String, CaseIterable {
  case unavailable = "status 503"
  case serverError = "status 500"
  case missing = "status 404"
  case denied = "status 403"
  case throttled = "status 429"
  case reset
  case resetOnce
  case truncate
  case stall
  case stallHead
  case shortBody
  case empty
  case wrongRange
  case missingRange
  case earlierRange
  case ignoredRange
  case extraBytes
  case twoLengths
  case silentClose
  case htmlOnce
  case gzipOnce
  case headerBomb
  case redirectLoop
  case slow
  /// No server at all.
  case offline

  /// The Origin's parameters; empty for faults of other kinds.
  var parameters: [String: String] {
    switch self {
    case .unavailable: ["status": "503"]
    case .serverError: ["status": "500", "fault-count": "3"]
    case .missing: ["status": "404"]
    case .denied: ["status": "403"]
    case .throttled: ["status": "429", "retry-after": "1", "fault-count": "2"]
    case .reset: ["fault": "reset", "fault-at": "5000"]
    case .resetOnce: ["fault": "reset", "fault-count": "1"]
    case .truncate: ["fault": "truncate", "fault-count": "4"]
    case .stall: ["fault": "stall", "fault-at": "3000"]
    case .stallHead: ["fault": "stall-head"]
    case .shortBody: ["fault": "short-body"]
    case .empty: ["fault": "empty-206"]
    case .wrongRange: ["fault": "wrong-content-range"]
    case .missingRange: ["fault": "missing-content-range"]
    case .earlierRange: ["fault": "earlier-range"]
    case .ignoredRange: ["fault": "ignore-range", "fault-count": "2"]
    case .extraBytes: ["fault": "extra-bytes"]
    case .twoLengths: ["fault": "length-and-chunked", "fault-count": "2"]
    case .silentClose: ["fault": "silent-close"]
    // Once only: httpfs accepts the page as the new file if it arrives three times.
    case .htmlOnce: ["fault": "html-200", "fault-count": "1"]
    case .gzipOnce: ["fault": "gzip", "fault-count": "1"]
    case .headerBomb: ["fault": "header-bomb"]
    case .redirectLoop: ["fault": "redirect-loop"]
    case .slow: ["latency": "150", "rate": "2m"]
    case .offline: [:]
    }
  }

  /// Every parameter that a fault may set, with nil to remove it.
  static let noParameters: [String: String?] = Dictionary(
    uniqueKeysWithValues: [
      "fault", "fault-at", "fault-count", "status", "retry-after", "latency", "rate",
    ].map { ($0, String?.none) })

  /// The symbols of `errno` that it excuses for an open, in addition to those of a failing server.
  var openErrors: Set<String> {
    switch self {
    case .missing: ["ENOENT", "EIO"]
    case .denied: ["EACCES", "EIO"]
    default: ["EIO", "ETIMEDOUT"]
    }
  }

  /// The symbols of `errno` that it excuses for a read of an open file.
  var readErrors: Set<String> {
    switch self {
    case .missing: ["ENOENT", "EIO", "ETIMEDOUT", "SIGBUS"]
    case .denied: ["EACCES", "EIO", "ETIMEDOUT", "SIGBUS"]
    default: ["EIO", "ETIMEDOUT", "SIGBUS"]
    }
  }

  /// The seconds after its end for which an open may still answer as during the fault.
  ///
  /// A failure is cached for a second, a silent server for five (docs/SEMANTICS.md, "open").
  var openMemory: Double { self == .stallHead ? 5.7 : 1.5 }

  /// The seconds after its end for which a read may still fail.
  ///
  /// This is the greatest delay before a range is requested again (5 s), which may be longer than a
  /// read waits, plus the second for which its failure is cached.
  var readMemory: Double { 6.5 }
}
