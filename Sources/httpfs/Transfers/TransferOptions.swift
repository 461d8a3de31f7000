import ArgumentParser
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes

/// What `httpfs get` and `httpfs put` have in common.
struct TransferOptions: ParsableArguments {
  @Option(
    name: [.customShort("H"), .long],
    help: ArgumentHelp(
      "A header field for the URL's own host, dropped when a redirect leads elsewhere; may be repeated. "
        + "'@FILE' reads one a line from a file.", valueName: "name: value"))
  var header: [String] = []

  @Option(help: ArgumentHelp("The User-Agent.", valueName: "text"))
  var userAgent: String?

  @Option(help: ArgumentHelp("How often in a row a request may fail.", valueName: "n"))
  var retries: Int = 8

  @Option(
    help: ArgumentHelp(
      "Give a request up when no byte has moved for so long (libcurl's average adds some seconds).",
      valueName: "seconds"))
  var timeout: Double = 30

  @Option(help: ArgumentHelp("How long a connection may take.", valueName: "seconds"))
  var connectTimeout: Double = 10

  @Option(help: ArgumentHelp("How many redirects are followed.", valueName: "n"))
  var maxRedirect: Int = 10

  @Option(
    name: .customLong("ca-file"),
    help: ArgumentHelp("Trust the certificate authorities of a PEM file.", valueName: "file"))
  var certificateAuthorityFile: String?

  @Flag(name: .customLong("http2"), help: "Offer HTTP/2 to https servers; uploads use HTTP/1.1.")
  var usesHTTP2 = false

  @Flag(help: "Print JSON lines to standard output, nothing else.")
  var json = false

  @Flag(name: [.short, .long], help: "Print errors only.")
  var quiet = false

  func validate() throws {
    guard (0...1000).contains(retries) else {
      throw ValidationError("--retries must be from 0 to 1000")
    }
    guard timeout >= 1, timeout <= 86_400 else {
      throw ValidationError("--timeout must be from 1 to 86400 seconds")
    }
    guard connectTimeout > 0, connectTimeout <= 3600 else {
      throw ValidationError("--connect-timeout must be above 0 and at most 3600 seconds")
    }
    guard (0...100).contains(maxRedirect) else {
      throw ValidationError("--max-redirect must be from 0 to 100")
    }
  }

  /// A client as the options want it.
  func makeClient(
    maximumConnectionsPerHost: Int = 64
  ) throws(CommandFailure) -> HTTPClient {
    var configuration = HTTPClient.Configuration()
    configuration.maximumConnectionsPerHost = maximumConnectionsPerHost
    if let userAgent { configuration.userAgent = userAgent }
    if let file = certificateAuthorityFile {
      do {
        _ = try contents(ofFile: file)
      } catch {
        throw CommandFailure("cannot read the certificate authorities '\(file)'", error)
      }
      configuration.certificateAuthorityFile = file
    }
    configuration.usesHTTP2 = usesHTTP2
    return HTTPClient(configuration: configuration)
  }

  /// Sets what is common to all requests of the command.
  func apply(to request: inout Request) throws(CommandFailure) {
    for field in try fields() { request.confidentialFields.append(field) }
    request.retries = retries
    request.stallTimeout = .seconds(timeout)
    request.connectTimeout = .seconds(connectTimeout)
    request.redirects.maximum = maxRedirect
  }

  private func fields() throws(CommandFailure) -> HTTPFields {
    var fields = HTTPFields()
    for text in header {
      guard text.hasPrefix("@") else {
        try fields.append(field(text, from: "--header"))
        continue
      }
      let path = String(text.dropFirst())
      let bytes: [UInt8]
      do {
        bytes = try contents(ofFile: path)
      } catch {
        throw CommandFailure("cannot read the header file '\(path)'", error)
      }
      let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      for (number, line) in lines.enumerated() where !line.isEmpty {
        let line = String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        try fields.append(field(line, from: "\(path):\(number + 1)"))
      }
    }
    return fields
  }

  /// Parses `Name: value`; the value, which may be a secret, is not shown in an error.
  private func field(_ text: String, from place: String) throws(CommandFailure) -> HTTPField {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    let value = parts.count == 2 ? parts[1].drop { $0 == " " || $0 == "\t" } : ""
    guard parts.count == 2, let name = HTTPField.Name(String(parts[0])),
      value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
    else { throw CommandFailure("\(place): a header is written 'Name: value', on one line") }
    return HTTPField(name: name, value: String(value))
  }
}
