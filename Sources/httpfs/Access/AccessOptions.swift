import ArgumentParser

/// How `httpfs mount`, `get` and `put` reach servers: with which headers and credentials, whom they
/// trust, and which way they take.
struct AccessOptions: ParsableArguments {
  @Option(
    name: [.customShort("H"), .long],
    help: ArgumentHelp(
      "A header field for each URL's own host, dropped when a redirect leads elsewhere; may be repeated. "
        + "'@FILE' reads one a line from a file.", valueName: "name: value"))
  var header: [String] = []

  @Option(
    help: ArgumentHelp(
      "Header fields from a file, one a line; may be repeated.", valueName: "file"),
    completion: .file())
  var headerFile: [String] = []

  @Option(
    help: ArgumentHelp(
      "A header field whose value an environment variable holds; may be repeated.",
      valueName: "name=variable"))
  var headerEnv: [String] = []

  @Option(help: ArgumentHelp("The User-Agent.", valueName: "text"))
  var userAgent: String?

  @Flag(
    name: .customLong("netrc"),
    help: "Take user and password of each URL's own host from ~/.netrc, which must be private.")
  var usesNetrc = false

  @Option(help: ArgumentHelp("The same from another file.", valueName: "file"), completion: .file())
  var netrcFile: String?

  @Option(
    name: .customLong("cookies"),
    help: ArgumentHelp(
      "Begin with the cookies of a file in Netscape's format, which is not written.",
      valueName: "file"), completion: .file())
  var cookieFile: String?

  @Option(
    name: [.customLong("cacert"), .customLong("ca-file")],
    help: ArgumentHelp(
      "Trust the certificate authorities of a PEM file, or of a directory of them, and no others.",
      valueName: "path"), completion: .file())
  var certificateAuthorities: String?

  @Flag(
    name: .customLong("insecure"),
    help: "Do not verify https servers: anybody on the way can read and change what is transferred."
  )
  var isInsecure = false

  @Option(
    name: .customLong("cert"),
    help: ArgumentHelp(
      "The client certificate for each URL's own host, a PEM file.", valueName: "file"),
    completion: .file())
  var certificate: String?

  @Option(
    name: .customLong("key"),
    help: ArgumentHelp(
      "Its private key, where that is in another file.", valueName: "file"), completion: .file())
  var certificateKey: String?

  @Option(
    help: ArgumentHelp(
      "Go through a proxy: http, https, socks5 or socks5h (the proxy resolves names). 'A|B;C' spreads the load over A and B and turns to C when both fail; DIRECT is no proxy. Default: http_proxy, https_proxy, all_proxy.",
      valueName: "url"))
  var proxy: String?

  @Option(
    name: [.customLong("no-proxy"), .customLong("noproxy")],
    help: ArgumentHelp(
      "The hosts to reach without a proxy, separated by commas; '*' for all. Default: no_proxy.",
      valueName: "hosts"))
  var noProxy: String?

  @Flag(name: .customLong("ipv4"), help: "Use IPv4 addresses only.")
  var usesIPv4Only = false

  @Flag(name: .customLong("ipv6"), help: "Use IPv6 addresses only.")
  var usesIPv6Only = false

  @Option(
    help: ArgumentHelp(
      "The network interface to use, by its name or address.", valueName: "name"))
  var interface: String?

  @Option(help: ArgumentHelp("How long a connection may take (default: 10).", valueName: "seconds"))
  var connectTimeout: Double?

  @Option(
    help: ArgumentHelp(
      "Give a request up when no byte has moved for so long (default: 15 for a mount, else 30; libcurl's average adds some seconds).",
      valueName: "seconds"))
  var stallTimeout: Double?

  func validate() throws {
    if let connectTimeout, !(connectTimeout > 0 && connectTimeout <= 3600) {
      throw ValidationError("--connect-timeout must be above 0 and at most 3600 seconds")
    }
    if let stallTimeout, !(stallTimeout >= 1 && stallTimeout <= 86_400) {
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
