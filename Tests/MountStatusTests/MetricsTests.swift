import MountStatus
import Testing

@Suite struct MetricsTests {
  private var lines: [String] {
    String(decoding: sample.metrics(), as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test func sumsAreOfAllFilesAndStatesAreCounted() {
    for line in [
      "httpfs_uptime_seconds 61.250", "httpfs_verifies_servers 1", "httpfs_length_bytes 104857610",
      "httpfs_cached_bytes 52428810", "httpfs_fetched_bytes_total 50331648",
      "httpfs_connections 4", "httpfs_requests_total 18", "httpfs_retries_total 2",
      "httpfs_waiting_reads 1", #"httpfs_files{state="complete"} 1"#,
      #"httpfs_files{state="unknown"} 1"#, #"httpfs_files{state="stale"} 0"#,
      "httpfs_cache_failing 1", "httpfs_cache_failures_total 3", "httpfs_kernel_inodes 5",
      "httpfs_kernel_open_handles 2", "httpfs_rate_limit_bytes_per_second 10485760",
    ] {
      #expect(lines.contains(line), "\(line)")
    }
  }

  @Test func filesHaveSeriesOnceSomethingIsKnownOfThem() {
    #expect(lines.contains(#"httpfs_file_cached_bytes{file="d/a \"b\".iso"} 52428800"#))
    #expect(
      lines.contains(
        #"httpfs_file_info{file="d/a \"b\".iso",state="downloading",url="https://example.org/d/a.iso?…"} 1"#
      ))
    #expect(!lines.contains { $0.contains("\u{1B}") })
  }

  @Test func labelsAreEscapedAsTheFormatSays() {
    let report = StatusReport(
      mountpoint: "/", uptimeSeconds: 0,
      files: [FileStatus(name: "a\\b\"c\nd", url: "http://h/", state: .idle)])
    let text = String(decoding: report.metrics(), as: UTF8.self)
    #expect(text.contains(#"httpfs_file_requests_total{file="a\\b\"c\nd"} 0"#))
    // No label can move the cursor of a terminal.
    let listing = FailedListing(
      directory: "d/", url: "http://h/d/", reason: "'text/\u{9B}2J'", showsEarlierNames: false)
    var failed = StatusReport(mountpoint: "/", uptimeSeconds: 0, files: [])
    failed.failedListings = [listing]
    #expect(
      String(decoding: failed.metrics(), as: UTF8.self).contains(#"reason="'text/\\u{9B}2J'"} 1"#))
    // An unknown length has no sample, rather than a 0.
    #expect(!text.contains("httpfs_file_length_bytes{"))
  }

  @Test func eachFamilyIsDescribedOnceBeforeItsSamples() {
    var described: Set<String> = []
    for line in lines where line.hasPrefix("# TYPE ") {
      let name = String(line.split(separator: " ")[2])
      #expect(described.insert(name).inserted, "\(name)")
      #expect(name.hasSuffix("_total") == line.hasSuffix(" counter"), "\(line)")
    }
    for line in lines where !line.hasPrefix("#") {
      #expect(described.contains(String(line.prefix { $0 != "{" && $0 != " " })), "\(line)")
    }
  }
}
