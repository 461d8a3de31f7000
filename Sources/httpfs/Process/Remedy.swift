import HTTPTransfer
import HTTPTransferCore
import RemoteFiles

/// What a user can do about a server's failure, in the messages of `mount`, `get` and `put`.
enum Remedy: String {
  case url = "check the URL"
  case credentials = "give credentials with --netrc or -H"
  case authority =
    "name the server's certificate authority with --cacert FILE, or use --insecure"
  case network = "check the host name, the port and the network"

  /// The remedy for a failure of a mount's file; nil if there is none.
  init?(_ error: FileError) {
    switch error.code {
    case .missing: self = .url
    case .denied: self = .credentials
    case .refused where error.reason.contains("TLS"): self = .authority
    case .unreachable: self = .network
    default: return nil
    }
  }

  /// The remedy for a failure of a transfer; nil if there is none, or if its reason is enough.
  init?(_ error: TransferError) {
    switch (error.code, error.status) {
    case (.tls, _): self = .authority
    case (.status, 404), (.status, 410): self = .url
    // The signature of a URL takes the place of credentials.
    case (.status, 401), (.status, 403):
      guard error.url.signatureExpiry == nil else { return nil }
      self = .credentials
    default: return nil
    }
  }

  /// The end of the message about a failure; empty without a remedy.
  static func ending(_ remedy: Remedy?) -> String { remedy.map { "; \($0.rawValue)" } ?? "" }
}
