/// What a user can do about a server's failure.
package enum FailureRemedy: String, Sendable {
  case url = "check the URL"
  case credentials = "give credentials with --netrc or -H"
  case proxyCredentials = "give the proxy's with --proxy http://user:password@HOST:PORT"
  case authority =
    "name the server's certificate authority with --cacert FILE, or use --insecure"
  case time =
    "the server must renew its certificate, or the clock of this machine is wrong"
  case plainHTTP =
    "the server does not speak TLS there: check the port, or try http://"
  case network = "check the host name, the port and the network"

  /// The remedy of a TLS failure; nil if another authority would not help.
  ///
  /// Whoever cuts or disturbs a connection must not lead the user to give up verification.
  package static func ofTLS(_ reason: String) -> FailureRemedy? {
    // The words of libcurl with OpenSSL, and with GnuTLS.
    let timely = [
      "certificate has expired", "certificate is not yet valid", "certificate expired",
      "certificate is not activated", "certificate not activated", "expiration date has passed",
    ]
    if timely.contains(where: reason.contains) { return .time }
    let plain = ["wrong version number", "packet length too long", "unexpected TLS packet"]
    if plain.contains(where: reason.contains) { return .plainHTTP }
    let signs = [
      "certificate problem", "certificate subject name", "certificate verification failed",
    ]
    return signs.contains { reason.contains($0) } ? .authority : nil
  }

  /// The end of the message about a failure; empty without a remedy.
  package static func ending(_ remedy: FailureRemedy?) -> String {
    remedy.map { "; \($0.rawValue)" } ?? ""
  }
}
