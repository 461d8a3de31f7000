internal import TextFormat

extension StatusReport {
  /// The report in Prometheus' text format 0.0.4: sums over the mount, then the known files.
  ///
  /// A list may name a million files of which only few were used. Files that are not known yet get
  /// no series.
  package func metrics() -> [UInt8] { written(as: .metrics) }

  /// The families of the mount, then one pass over all files for each family of files.
  func metricsPasses(_ sums: StatusSums) -> [StatusDocument.Pass] {
    var writer = MetricsWriter()
    writer.family("httpfs_uptime_seconds", .gauge, "How long the mount has been there.")
    writer.sample(decimal(uptimeSeconds, fractionDigitCount: 3))
    writer.family(
      "httpfs_verifies_servers", .gauge, "Whether https servers must prove who they are.")
    writer.sample(verifiesServers ? 1 : 0)
    writeRateLimit(to: &writer)
    writeTotals(of: sums, to: &writer)
    writer.family("httpfs_cache_failing", .gauge, "Whether the cache does not take what it should.")
    writer.sample(cache.error == nil ? 0 : 1)
    writer.family("httpfs_cache_failures_total", .counter, "How often the cache has failed.")
    writer.sample(cache.failures)
    writer.family("httpfs_kernel_inodes", .gauge, "Versions of files that the kernel knows.")
    writer.sample(kernel.inodes)
    writer.family("httpfs_kernel_open_handles", .gauge, "Open files.")
    writer.sample(kernel.openHandles)
    writeFailedListings(to: &writer)
    let head = StatusDocument.Pass(heading: writer.bytes) { _, _, _ in }
    return sums.knownCount == 0 ? [head] : [head] + Self.filePasses
  }

  private func writeRateLimit(to writer: inout MetricsWriter) {
    guard let limit = rateLimitBytesPerSecond else { return }
    writer.family(
      "httpfs_rate_limit_bytes_per_second", .gauge, "What all files together may bring at most.")
    writer.sample(limit)
  }

  private func writeFailedListings(to writer: inout MetricsWriter) {
    let failed = failedListings ?? []
    guard !failed.isEmpty else { return }
    writer.family(
      "httpfs_failed_listing", .gauge,
      "A directory whose server has not sent its listing; always 1.")
    for listing in failed {
      writer.sample(1, labels: [("directory", listing.directory), ("reason", listing.reason)])
    }
  }

  private func writeTotals(of sums: StatusSums, to writer: inout MetricsWriter) {
    writer.family("httpfs_files", .gauge, "Files by their state.")
    for state in FileState.allCases {
      writer.sample(sums.count(of: state), labels: [("state", state.rawValue)])
    }
    writer.family("httpfs_length_bytes", .gauge, "The lengths that are known, added up.")
    writer.sample(totals.length)
    writer.family("httpfs_cached_bytes", .gauge, "Bytes of current versions in the cache.")
    writer.sample(totals.cachedBytes)
    writer.family("httpfs_fetched_bytes_total", .counter, "Body bytes off the wire.")
    writer.sample(totals.fetchedBytes)
    writer.family("httpfs_damaged_bytes_total", .counter, "Cached bytes that were found damaged.")
    writer.sample(totals.damagedBytes)
    writer.family("httpfs_speed_bytes_per_second", .gauge, "The present speed.")
    writer.sample(totals.speedBytesPerSecond)
    writer.family("httpfs_connections", .gauge, "Connections that carry bytes now.")
    writer.sample(totals.connections)
    writer.family("httpfs_requests_total", .counter, "Requests sent.")
    writer.sample(totals.requests)
    writer.family("httpfs_retries_total", .counter, "Requests that repeated one that had failed.")
    writer.sample(totals.retries)
    writer.family("httpfs_waiting_reads", .gauge, "Reads that wait.")
    writer.sample(totals.waitingReads)
  }

  private static var filePasses: [StatusDocument.Pass] {
    func family(
      _ name: String, _ kind: MetricsWriter.Kind, _ help: String,
      _ value: @escaping @Sendable (FileStatus) -> Int64?
    ) -> StatusDocument.Pass {
      var writer = MetricsWriter()
      writer.family(name, kind, help)
      return StatusDocument.Pass(heading: writer.bytes) { file, _, bytes in
        guard file.state != .unknown, let value = value(file) else { return }
        var writer = MetricsWriter(name: name)
        writer.sample(value, labels: [("file", file.name)])
        bytes += writer.bytes
      }
    }
    return [
      infoPass,
      family("httpfs_file_length_bytes", .gauge, "The complete length, where it is known.") {
        $0.length
      },
      family("httpfs_file_cached_bytes", .gauge, "Bytes in the cache.") { $0.cachedBytes },
      family("httpfs_file_fetched_bytes_total", .counter, "Body bytes off the wire.") {
        $0.fetchedBytes
      },
      family(
        "httpfs_file_damaged_bytes_total", .counter, "Cached bytes that were found damaged."
      ) { $0.damagedBytes },
      family("httpfs_file_speed_bytes_per_second", .gauge, "The present speed.") {
        $0.speedBytesPerSecond
      },
      family("httpfs_file_connections", .gauge, "Connections that carry bytes now.") {
        Int64($0.connections)
      },
      family("httpfs_file_requests_total", .counter, "Requests sent.") { Int64($0.requests) },
      family(
        "httpfs_file_requests_last_minute", .gauge,
        "Those of them that were sent in the last minute."
      ) { $0.requestsLastMinute },
      family(
        "httpfs_file_retries_total", .counter, "Requests that repeated one that had failed."
      ) { Int64($0.retries) },
      family("httpfs_file_waiting_reads", .gauge, "Reads that wait.") {
        Int64($0.waitingReads.count)
      },
    ]
  }

  private static var infoPass: StatusDocument.Pass {
    let name = "httpfs_file_info"
    var writer = MetricsWriter()
    writer.family(name, .gauge, "What a file is doing and where it comes from; always 1.")
    return StatusDocument.Pass(heading: writer.bytes) { file, _, bytes in
      guard file.state != .unknown else { return }
      var writer = MetricsWriter(name: name)
      writer.sample(
        1, labels: [("file", file.name), ("state", file.state.rawValue), ("url", file.url)])
      bytes += writer.bytes
    }
  }
}

/// Writes families of samples in Prometheus' text format.
struct MetricsWriter {
  enum Kind: String {
    case gauge, counter
  }

  private(set) var bytes: [UInt8] = []
  private var name: String

  /// - Parameter name: the family that samples belong to until another family begins.
  init(name: String = "") { self.name = name }

  /// Begins a family; its samples follow.
  mutating func family(_ name: String, _ kind: Kind, _ help: String) {
    self.name = name
    bytes += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n".utf8
  }

  mutating func sample(_ value: some BinaryInteger, labels: [(name: String, value: String)] = []) {
    sample(String(value), labels: labels)
  }

  mutating func sample(_ value: String, labels: [(name: String, value: String)] = []) {
    bytes += name.utf8
    if !labels.isEmpty {
      bytes += "{".utf8
      for (index, label) in labels.enumerated() {
        bytes += "\(index == 0 ? "" : ",")\(label.name)=\"".utf8
        append(escaping: label.value)
        bytes += "\"".utf8
      }
      bytes += "}".utf8
    }
    bytes += " \(value)\n".utf8
  }

  /// Escapes the three bytes that the format requires in the value of a label, and as everywhere
  /// the other control characters: the file is shown in terminals, too.
  private mutating func append(escaping value: String) {
    for (index, line) in value.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    {
      if index > 0 { bytes += #"\n"#.utf8 }
      for byte in escapingControls(String(line)).utf8 {
        switch byte {
        case UInt8(ascii: "\\"): bytes += #"\\"#.utf8
        case UInt8(ascii: "\""): bytes += #"\""#.utf8
        default: bytes.append(byte)
        }
      }
    }
  }
}
