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
    (.invalidResponse, EIO, EIO),
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
      (.missing(status: 404), .missing, "HTTP 404"), (.missing(status: 410), .missing, "HTTP 410"),
      (.denied(status: 401), .denied, "HTTP 401: credentials"),
      (.denied(status: 403), .denied, "HTTP 403: access is refused"),
      (.denied(status: 407), .denied, "HTTP 407: the proxy"),
      (.unavailable(status: 503, retryAfter: nil), .unavailable, "HTTP 503"),
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
    #expect(busy.adding(": twice").contact == .refused)
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
