import Glibc
import HTTPTransfer
import HTTPTransferCore
import RangeCache
import Testing

@testable import RemoteFiles

/// The errors that applications get for failures.
@Suite struct FileErrorTests {
  private static let table: [(FileError.Code, open: CInt, read: CInt)] = [
    (.missing, ENOENT, EIO), (.denied, EACCES, EACCES), (.stale, ESTALE, ESTALE),
    (.unreachable, EIO, EIO), (.disconnected, EIO, EIO), (.timedOut, ETIMEDOUT, ETIMEDOUT),
    (.invalidResponse, EIO, EIO), (.rejected, EIO, EIO),
    (.unavailable, EIO, EIO), (.unsigned, EIO, EIO), (.refused, EIO, EIO),
    (.tooManyFiles, EMFILE, EIO), (.exhausted, EMFILE, EIO), (.corrupt, EIO, EIO),
    (.cacheFailed, EIO, EIO), (.unmounted, EIO, EIO),
  ]

  @Test("Every code has its errno, for names and for reads")
  func errnos() {
    #expect(Set(Self.table.map(\.0)) == Set(FileError.Code.allCases))
    for row in Self.table {
      let error = FileError(row.0, "reason")
      #expect(error.openErrno == row.open, "\(row.0)")
      #expect(error.readErrno == row.read, "\(row.0)")
      #expect("\(error)" == "reason")
    }
  }

  @Test(
    "Every failure of a transfer has its code",
    arguments: [
      (.unresolvedHost, .unreachable), (.connectionRefused, .unreachable),
      (.noRoute, .disconnected), (.connectionTimedOut, .timedOut), (.connectionLost, .unavailable),
      (.truncated, .unavailable), (.timedOut, .timedOut), (.tls, .refused),
      (.tooManyRedirects, .refused), (.forbiddenRedirect, .refused),
      (.malformedResponse, .invalidResponse), (.headTooLarge, .refused),
      (.outOfResources, .exhausted), (.other, .unavailable),
    ] as [(ExchangeError.Code, FileError.Code)])
  func transferErrors(code: ExchangeError.Code, expected: FileError.Code) throws {
    let url = try RemoteURL("http://user:CANARY@h/a?CANARY")
    let error = FileError(ExchangeError(code: code, url: url, detail: "detail"))
    #expect(error.code == expected)
    #expect(error.reason.contains("detail"))
    #expect(!error.reason.contains("CANARY"))
  }

  @Test(
    "Every verdict that is no answer has its code",
    arguments: [
      (.missing(status: 404), .missing, "HTTP 404 Not Found"),
      (.missing(status: 410), .missing, "HTTP 410 Gone"),
      (.denied(status: 401), .denied, "HTTP 401 Unauthorized: credentials"),
      (.denied(status: 403), .denied, "HTTP 403 Forbidden: access is refused"),
      (.denied(status: 407), .denied, "HTTP 407 Proxy Authentication Required: the proxy"),
      (.rejected(status: 400), .rejected, "HTTP 400 Bad Request"),
      (.unavailable(status: 503, retryAfter: nil), .unavailable, "HTTP 503 Service Unavailable"),
      (.unavailable(status: 599, retryAfter: nil), .unavailable, "HTTP 599"),
      (.unavailable(status: 429, retryAfter: .seconds(7)), .unavailable, "retry after 7.0 seconds"),
      (.invalid(reason: "206 without Content-Range"), .invalidResponse, "Content-Range"),
      (.unsatisfiable(completeLength: 5), .invalidResponse, "HTTP 416"),
      (.preconditionFailed, .stale, "HTTP 412"),
      (.notModified(ContentVersion()), .invalidResponse, "HTTP 304"),
      (.whole(ContentVersion()), .invalidResponse, "another question"),
      (.part(ContentVersion(), range: 0..<1), .invalidResponse, "another question"),
    ] as [(ResponseVerdict, FileError.Code, String)])
  func verdicts(verdict: ResponseVerdict, expected: FileError.Code, reason: String) {
    let error = FileError(verdict)
    #expect(error.code == expected)
    #expect(error.reason.contains(reason))
  }

  @Test(
    "A failure that a user can do something about says what",
    arguments: [
      (.missing(status: 404), "HTTP 404 Not Found; check the URL"),
      (.denied(status: 403), "HTTP 403 Forbidden: access is refused; give credentials"),
      (.denied(status: 407), "other credentials; give the proxy's with --proxy"),
      (.unavailable(status: 503, retryAfter: nil), "HTTP 503 Service Unavailable"),
    ] as [(ResponseVerdict, String)])
  func advice(verdict: ResponseVerdict, text: String) {
    #expect(FileError(verdict).advisedReason.contains(text))
  }

  @Test("The advice after a failure of TLS gives up verification for no expired certificate")
  func adviceOnTLS() throws {
    let url = try RemoteURL("https://h/a")
    func text(_ code: ExchangeError.Code, _ detail: String = "self-signed") -> String {
      FileError(ExchangeError(code: code, url: url, detail: detail)).advisedReason
    }
    #expect(
      text(.tls, "SSL certificate problem: self-signed certificate")
        .hasSuffix("with --cacert FILE, or use --insecure"))
    for reason in ["certificate has expired", "certificate is not yet valid"] {
      let text = text(.tls, "SSL certificate problem: \(reason)")
      #expect(text.hasSuffix("renew its certificate, or the clock of this machine is wrong"))
      #expect(!text.contains("--"))
    }
    #expect(text(.tls, "SSL routines::wrong version number").hasSuffix("or try http://"))
    #expect(!text(.tls, "SSL routines::unexpected eof").contains(";"))
    #expect(text(.connectionRefused).hasSuffix("; check the host name, the port and the network"))
    #expect(!text(.tooManyRedirects).contains(";"))
    #expect(!text(.connectionLost).contains(";"))
  }

  @Test("Credentials are no help once the signature of the URL has expired")
  func adviceOnSignature() {
    let error = FileError(ResponseVerdict.denied(status: 403)).ofExpiredSignature
    #expect(error.advisedReason.hasSuffix(": the signature of the listed URL has expired"))
    #expect(error.code == .denied)
    #expect(error.contact == .refused)
  }

  @Test("A shortage of this process says nothing about the server")
  func shortage() throws {
    let url = try RemoteURL("http://h/a")
    let error = FileError(ExchangeError(code: .outOfResources, url: url, detail: "no descriptor"))
    #expect(!error.isOfServer)
    #expect(error.contact == nil)
  }

  @Test("An interrupted exchange is no refusal by its server")
  func interruption() throws {
    let url = try RemoteURL("http://h/a")
    for code in [ExchangeError.Code.connectionLost, .truncated, .malformedResponse, .tls] {
      #expect(FileError(ExchangeError(code: code, url: url, detail: "")).contact == .accepted)
    }
    #expect(FileError(ExchangeError(code: .other, url: url, detail: "")).contact == nil)
    let busy = FileError(.unavailable(status: 503, retryAfter: nil))
    #expect(busy.contact == .refused)
  }

  @Test("A cache directory that cannot be had is a failure of the cache")
  func cacheErrors() throws {
    let error = try #require(throws: CacheError.self) {
      _ = try CacheDirectory(path: "/proc/self/nowhere")
    }
    #expect(FileError(error).code == .cacheFailed)
    #expect(FileError(error).reason.contains("/proc/self/nowhere"))
  }
}
