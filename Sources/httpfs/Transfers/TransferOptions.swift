import ArgumentParser
import HTTPTransfer

/// The common options of `httpfs get` and `httpfs put`.
struct TransferOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Maximum number of consecutive failures of a request.", valueName: "n"))
  var retries: Int = 8

  @Flag(help: "Replace an existing file, except under a name from Content-Disposition.")
  var overwrite = false

  @Option(help: ArgumentHelp("The same as --stall-timeout.", valueName: "time"))
  var timeout: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "End with exit code 2 if the whole command takes longer: 90, 5m, 2h.", valueName: "time"))
  var maxTime: TimeSpan?

  @Option(help: ArgumentHelp("Maximum number of redirects to follow.", valueName: "n"))
  var maxRedirect: Int = 10

  @OptionGroup var rate: RateLimitOption

  @Flag(name: .customLong("http2"), help: "Offer HTTP/2 to https servers; uploads use HTTP/1.1.")
  var usesHTTP2 = false

  @Flag(help: "Print only JSON lines, to standard output.")
  var json = false

  @Flag(name: [.short, .long], help: "Print errors only.")
  var quiet = false

  @OptionGroup(title: "Access") var access: AccessOptions

  @OptionGroup var configuration: ConfigurationOptions

  func validate() throws {
    guard (0...1000).contains(retries) else {
      throw ValidationError("--retries must be from 0 to 1000")
    }
    if let timeout, !(timeout.seconds >= 1 && timeout.seconds <= 86_400) {
      throw ValidationError("--timeout must be from 1 to 86400 seconds")
    }
    if let maxTime, maxTime.seconds <= 0 { throw ValidationError("--max-time must be above 0") }
    guard (0...100).contains(maxRedirect) else {
      throw ValidationError("--max-redirect must be from 0 to 100")
    }
  }

  /// Makes a client with the settings of the options.
  func makeClient(_ access: Access, maximumConnectionsPerHost: Int = 64) -> TransferClient {
    var configuration = access.configuration
    configuration.maximumConnectionsPerHost = maximumConnectionsPerHost
    configuration.usesHTTP2 = usesHTTP2
    configuration.rateLimit = rate.rateLimit?.bytesPerSecond
    return TransferClient(configuration: configuration)
  }

  /// Applies the common settings of the command's requests.
  func apply(_ access: Access, to request: inout Request) {
    request.retries = retries
    request.stallTimeout = access.stallTimeout ?? timeout?.duration ?? .seconds(30)
    request.connectTimeout = access.connectTimeout
    request.redirects.maximum = maxRedirect
  }
}
