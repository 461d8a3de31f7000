import ArgumentParser
import Glibc
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import SourceList

/// `httpfs put FILE URL`: uploads with progress; `-` is standard input.
struct PutCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "put",
    abstract: "Upload a file to a URL.",
    discussion: """
      PUT sends the file as it is. '-' is standard input, which is first copied to a file \
      without a name in TMPDIR (/tmp by default), so that it can be sent again. With --form, POST \
      sends fields and files as multipart/form-data, and FILE is omitted: \
      httpfs put --form doc=@report.pdf URL

      Exit codes: 0 the server has accepted the upload, 64 bad usage, 130 ended by Ctrl-C; others \
      as for 'httpfs get'.
      """)

  @Argument(
    help: ArgumentHelp(
      "The file, or '-' for standard input, and its destination; with --form only the destination.",
      valueName: "FILE URL"),
    completion: .file())
  var arguments: [String]

  @Option(help: ArgumentHelp("HTTP method: PUT or POST.", valueName: "method"))
  var method: String?

  @Option(
    help: ArgumentHelp(
      "A field of a multipart form: NAME=VALUE, or NAME=@FILE for a file; may be repeated.",
      valueName: "name=value"))
  var form: [String] = []

  @Option(help: ArgumentHelp("The media type of the file.", valueName: "type"))
  var contentType: String = "application/octet-stream"

  @Flag(
    help: "Send the credentials of the URL only when the server asks for them.")
  var authenticateOnChallenge = false

  @Flag(help: "Turn an upload into a GET after a 301 or 302 redirect, as always after a 303.")
  var redirectAsGet = false

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Write the server's response to a file; '-' for standard output.", valueName: "path"),
    completion: .file())
  var output: String?

  @OptionGroup var options: TransferOptions

  /// The maximum size of a server's response that is stored for printing.
  private static let answerLimit = 64 << 20

  func validate() throws {
    if let method, !["PUT", "POST"].contains(method.uppercased()) {
      throw ValidationError("--method must be PUT or POST")
    }
    if output == "-", options.json {
      throw ValidationError("'-o -' and --json both write to standard output; choose one")
    }
    guard arguments.count == (form.isEmpty ? 2 : 1) else {
      throw ValidationError(
        form.isEmpty ? "name a FILE and a URL" : "with --form name the URL alone")
    }
    if output == "" { throw ValidationError("--output needs the name of a file") }
    for field in form where !field.contains("=") || field.hasPrefix("=") {
      throw ValidationError("--form is written NAME=VALUE or NAME=@FILE")
    }
  }

  private var readsStandardInput: Bool { form.isEmpty && arguments[0] == "-" }

  func run() throws {
    try reportingFailure {
      let timeLimit = TimeLimit(options.maxTime?.duration)
      let access = try Access(options.access)
      var request = try makeRequest(access)
      // Before signals are blocked: until then, Ctrl-C ends the process.
      let copy = readsStandardInput ? try StandardInputCopy(timeLimit: timeLimit) : nil
      defer { withExtendedLifetime(copy) {} }
      if let copy { request.body = .file(copy.path, contentType: contentType) }
      TransferRun.blockSignals()
      let queue = TransferQueue(client: options.makeClient(access))
      let transfer = queue.add(request)
      let name = readsStandardInput ? "standard input" : form.isEmpty ? arguments[0] : "form"
      var display = TransferOutput(json: options.json, quiet: options.quiet)
      let outcome = TransferRun(
        queue: queue, isUpload: true, timeLimit: timeLimit.left
      ).run(
        [TransferRun.Job(name: name, url: request.url)], output: &display
      ) { _ in transfer }
      try outcome.endIfInterrupted()
      if let code = outcome.exitCode { throw code }
      if let failure = display.failure { throw failure }
      if output == "-", case .success(let result)? = transfer.outcome {
        try printToStandardOutput(result.body)
      }
    }
  }

  private func makeRequest(_ access: Access) throws(CommandFailure) -> Request {
    let url: RemoteURL
    do {
      url = try RemoteURL(arguments[arguments.count - 1])
    } catch {
      throw CommandFailure("malformed URL: \(error)")
    }
    var request = Request(url: access.url(url), method: form.isEmpty ? .put : .post)
    if let method { request.method = method.uppercased() == "PUT" ? .put : .post }
    if form.isEmpty {
      request.body = .file(arguments[0], contentType: contentType)
    } else {
      request.body = .multipart(
        form.map { field in
          let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
          let value = String(parts[1])
          return FormPart(
            name: String(parts[0]),
            content: value.hasPrefix("@") ? .file(path: String(value.dropFirst())) : .text(value))
        })
    }
    switch output {
    case nil: request.destination = .discard
    case "-": request.destination = .memory(limit: Self.answerLimit)
    case let path?:
      request.destination = .file(path, existing: options.overwrite ? .replace : .keep)
    }
    request.confidentialFields = access.fields(for: SourceEntry(path: "", url: url))
    options.apply(access, to: &request)
    // An upload that a redirect turned into a GET would look successful.
    request.redirects.keepsMethod = !redirectAsGet
    request.authenticatesOnChallenge = authenticateOnChallenge
    return request
  }
}
