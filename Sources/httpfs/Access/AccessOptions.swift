import ArgumentParser

/// How `httpfs mount`, `get` and `put` access servers: headers, credentials, trusted authorities,
/// and network path.
struct AccessOptions: ParsableArguments {
  @Option(
    name: [.customShort("H"), .long],
    help: ArgumentHelp(
      "A header field for each URL's own host, not sent to other hosts after a redirect; may be repeated. "
        + "'@FILE' reads fields from a file, one per line.", valueName: "name: value"))
  var header: [String] = []

  @Option(
    help: ArgumentHelp(
      "Header fields from a file, one per line; may be repeated.", valueName: "file"),
    completion: .file())
  var headerFile: [String] = []

  @Option(
    help: ArgumentHelp(
      "A header field with its value from an environment variable; may be repeated.",
      valueName: "name=variable"))
  var headerEnv: [String] = []

  @Option(help: ArgumentHelp("Value of the User-Agent field.", valueName: "text"))
  var userAgent: String?

  @Flag(
    name: .customLong("netrc"),
    help: "Read user and password for each URL's own host from ~/.netrc, which must be private.")
  var usesNetrc = false

  @Option(
    help: ArgumentHelp("Like --netrc, but from this file.", valueName: "file"), completion: .file())
  var netrcFile: String?

  @Option(
    name: .customLong("cookies"),
    help: ArgumentHelp(
      "Read initial cookies from a file in Netscape's format; the file is not changed.",
      valueName: "file"), completion: .file())
  var cookieFile: String?

  @Option(
    name: [.customLong("cacert"), .customLong("ca-file")],
    help: ArgumentHelp(
      "Trust only the certificate authorities in a PEM file, or in a directory of such files.",
      valueName: "path"), completion: .file())
  var certificateAuthorities: String?

  @Flag(
    name: .customLong("insecure"),
    help: "Do not verify https servers: anybody on the network can then read and change the data."
  )
  var isInsecure = false

  @Option(
    name: .customLong("cert"),
    help: ArgumentHelp(
      "PEM file with the client certificate for each URL's own host.", valueName: "file"),
    completion: .file())
  var certificate: String?

  @Option(
    name: .customLong("key"),
    help: ArgumentHelp(
      "PEM file with the private key, if it is not in the file of --cert.", valueName: "file"),
    completion: .file())
  var certificateKey: String?

  @Option(
    help: ArgumentHelp(
      "Use a proxy: http, https, socks4, socks5, or socks4a and socks5h (the proxy resolves names). 'A|B;C' distributes the load over A and B and uses C when both fail; DIRECT means no proxy. Default: http_proxy, https_proxy, all_proxy.",
      valueName: "url"))
  var proxy: String?

  @Option(
    name: [.customLong("no-proxy"), .customLong("noproxy")],
    help: ArgumentHelp(
      "Hosts to reach without a proxy, separated by commas; '*' for all. Default: no_proxy.",
      valueName: "hosts"))
  var noProxy: String?

  @Flag(name: .customLong("ipv4"), help: "Use IPv4 addresses only.")
  var usesIPv4Only = false

  @Flag(name: .customLong("ipv6"), help: "Use IPv6 addresses only.")
  var usesIPv6Only = false

  @Option(
    help: ArgumentHelp(
      "Network interface to use, given by name or address.", valueName: "name"))
  var interface: String?

  @Option(help: ArgumentHelp("Time limit for connecting (default: 10s).", valueName: "time"))
  var connectTimeout: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "Abort a request after this time without any byte (default: 15s for a mount, otherwise 30s; libcurl's average adds some seconds).",
      valueName: "time"))
  var stallTimeout: TimeSpan?

  func validate() throws {
    if let connectTimeout, !(connectTimeout.seconds > 0 && connectTimeout.seconds <= 3600) {
      throw ValidationError("--connect-timeout must be above 0 and at most 3600 seconds")
    }
    if let stallTimeout, !(stallTimeout.seconds >= 1 && stallTimeout.seconds <= 86_400) {
      throw ValidationError("--stall-timeout must be from 1 to 86400 seconds")
    }
    if usesIPv4Only, usesIPv6Only {
      throw ValidationError("--ipv4 and --ipv6 exclude each other; without them both are used")
    }
    if certificateKey != nil, certificate == nil {
      throw ValidationError("--key is the private key of a --cert; name that, too")
    }
  }
}
