import ArgumentParser
import HTTPTransferCore

/// `--rate-limit`, of commands that transfer.
struct RateLimitOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Maximum bytes per second for all transfers together: 500K, 10M; 0 for no limit.",
      valueName: "rate"))
  var rateLimit: ByteRate?
}

/// `--file-rate-limit`, of commands that fetch files.
struct FileRateLimitOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Maximum bytes per second for each file, over all its connections; 0 for no limit.",
      valueName: "rate"))
  var fileRateLimit: ByteRate?
}

/// A number of bytes per second on the command line: `500K`, `10M/s`; the units are powers of 1024.
struct ByteRate: ExpressibleByArgument {
  /// 0 for no limit.
  let bytesPerSecond: Int64

  init?(argument: String) {
    guard let rate = HTTPTransferCore.bytesPerSecond(ofText: argument) else { return nil }
    bytesPerSecond = rate
  }
}
