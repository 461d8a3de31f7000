import ArgumentParser
import Glibc
import HTTPTransfer

/// The exit codes of `get` and `put`, with the numbers of aria2 where it has one.
///
/// A run in which transfers fail for several reasons ends with ``several``.
enum TransferExit: Int32, CaseIterable {
  /// Another reason, or several.
  case several = 1
  /// No byte within the time limits, or `--max-time`.
  case timeout = 2
  /// 404 or 410.
  case notFound = 3
  /// No connection, or it was lost.
  case network = 6
  /// A local file cannot be read or written.
  case disk = 9
  /// The host's name has no address.
  case nameResolution = 19
  /// Another status, an invalid response, or a file that keeps changing.
  case badResponse = 22
  /// Too many redirects, or a forbidden one.
  case redirect = 23
  /// 401, 403 or 407.
  case denied = 24
  /// The bytes do not match the checksum.
  case checksum = 32
  /// The certificate or the handshake (the number of curl).
  case tls = 60
  /// A file exists that must not be replaced (`EX_CANTCREAT`).
  case exists = 73

  init(_ error: TransferError) { self.init(error.code, status: error.status) }

  /// The code of a failure of a kind; `status` is that of HTTP, if a response has caused it.
  init(_ code: TransferError.Code, status: Int?) {
    self =
      switch code {
      case .unresolvedHost: .nameResolution
      case .connectionRefused, .connectionLost: .network
      case .timedOut: .timeout
      case .tls: .tls
      case .redirect: .redirect
      case .status:
        switch status {
        case 404, 410: .notFound
        case 401, 403, 407: .denied
        default: .badResponse
        }
      case .invalidResponse, .changed: .badResponse
      case .checksumMismatch: .checksum
      case .destination, .destinationInUse, .unreadableBody: .disk
      case .destinationExists: .exists
      case .cancelled, .tooLarge, .invalidRequest, .outOfResources, .other: .several
      }
  }

  /// The code of a run in which transfers have failed for `reasons`; nil if none has.
  init?(_ reasons: Set<TransferExit>) {
    guard let first = reasons.first else { return nil }
    self = reasons.count == 1 ? first : .several
  }

  var code: ExitCode { ExitCode(rawValue) }
}
