/// What can go wrong with the server of a file.
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

  /// The Origin's parameters; none for what is not one of its faults.
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
    // Believed when it comes three times: then it is what the file has become.
    case .htmlOnce: ["fault": "html-200", "fault-count": "1"]
    case .gzipOnce: ["fault": "gzip", "fault-count": "1"]
    case .headerBomb: ["fault": "header-bomb"]
    case .redirectLoop: ["fault": "redirect-loop"]
    case .slow: ["latency": "150", "rate": "2m"]
    case .offline: [:]
    }
  }

  /// Every parameter that a fault may set, to be taken back.
  static let noParameters: [String: String?] = Dictionary(
    uniqueKeysWithValues: [
      "fault", "fault-at", "fault-count", "status", "retry-after", "latency", "rate",
    ].map { ($0, String?.none) })

  /// The symbols of `errno` that it excuses, beside those of a server that fails.
  var openErrors: Set<String> {
    switch self {
    case .missing: ["ENOENT", "EIO"]
    case .denied: ["EACCES", "EIO"]
    default: ["EIO", "ETIMEDOUT"]
    }
  }

  /// The symbols that a read of an open file may fail with.
  var readErrors: Set<String> {
    switch self {
    case .missing: ["ENOENT", "EIO", "ETIMEDOUT", "SIGBUS"]
    case .denied: ["EACCES", "EIO", "ETIMEDOUT", "SIGBUS"]
    default: ["EIO", "ETIMEDOUT", "SIGBUS"]
    }
  }

  /// For how many seconds after its end an open may still answer as during the fault
  /// (docs/SEMANTICS.md, "open"): a failure is remembered for a second, a silent server for five.
  var openMemory: Double { self == .stallHead ? 5.7 : 1.5 }

  /// For how many seconds after its end a read may still fail: the greatest delay before a range is
  /// asked for again (5 s), which may be longer than a read waits, and the second for which its
  /// failure then is remembered.
  var readMemory: Double { 6.5 }
}
