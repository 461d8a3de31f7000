// A debug build may take `stat` from CLinux, because another file of its batch imports it.
import CLinux
import Glibc
import HTTPTransfer
import HTTPTransferCore

/// Checks whether servers can be reached and trusted.
extension DoctorChecks {
  static func certificates() -> DoctorFinding {
    let path = environmentVariable("SSL_CERT_FILE") ?? "/etc/ssl/certs/ca-certificates.crt"
    var status = stat()
    guard stat(path, &status) == 0, status.st_size > 0, access(path, R_OK) == 0 else {
      return .warning(
        "\(path) is missing or empty: https URLs will fail",
        "install the package ca-certificates ('apt-get install ca-certificates'), or use --cacert")
    }
    return .ok("certificates in \(path)")
  }

  static func library() -> DoctorFinding {
    let library = NetworkLibrary.current
    guard library.tls != nil else {
      return .failed(
        "\(library.version) has no TLS: https URLs will fail", "install the package libcurl4")
    }
    return .ok(library.version)
  }

  /// The proxies that libcurl takes from the environment.
  static func proxies() -> DoctorFinding {
    let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    let present = names.compactMap { name in environmentVariable(name).map { (name, $0) } }
    for (name, value) in present {
      do {
        _ = try ProxyList(value)
      } catch {
        return .warning("\(name): \(error)", "correct or unset the variable, or use --proxy")
      }
    }
    if present.isEmpty, environmentVariable("HTTP_PROXY") != nil {
      return .warning(
        "HTTP_PROXY is set, but curl, and so httpfs, goes by http_proxy only",
        "set http_proxy and https_proxy, or use --proxy")
    }
    guard !present.isEmpty else { return .ok("no proxy in the environment") }
    let shown = present.map { name, value in
      let word = Redaction.hidingSecrets(in: Array("--proxy=\(value)".utf8), after: [])
      return "\(name) \(String(decoding: word.dropFirst("--proxy=".utf8.count), as: UTF8.self))"
    }
    let exceptions = environmentVariable("no_proxy") ?? environmentVariable("NO_PROXY")
    return .ok(
      "proxies of the environment: \(shown.joined(separator: ", "))"
        + (exceptions.map { ", but not for \($0)" } ?? ""))
  }

  static func netrc() -> DoctorFinding? {
    guard let path = homeDirectory().map({ "\($0)/.netrc" }), access(path, F_OK) == 0 else {
      return nil
    }
    do throws(CommandFailure) {
      _ = try Access.netrc(ofFile: path)
      return .ok("\(path) is private, and can be read")
    } catch {
      return .warning("--netrc would fail: \(error)", "run 'chmod 600 \(path)', or fix its lines")
    }
  }

  /// With a wrong clock, no certificate is valid.
  static func clock() -> DoctorFinding {
    var now = time(nil)
    var program = stat()
    // This program cannot have been built or installed in the future.
    let earliest =
      stat("/proc/self/exe", &program) == 0
      ? program.st_ctim.tv_sec - 86_400 : 1_700_000_000
    var parts = tm()
    gmtime_r(&now, &parts)
    let year = Int(parts.tm_year) + 1900
    guard now >= earliest, year < 2100 else {
      return .warning(
        "the clock is wrong: it is in the year \(year); certificates will not be valid",
        "run 'timedatectl set-ntp true', or set it with date(1)")
    }
    return .ok("the clock looks right (year \(year))")
  }
}
