import CLinux
import Glibc
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import LinuxSystem
import SourceList

/// The settings of ``AccessOptions``, with their files and variables read.
///
/// This happens at the start, so that errors are reported before anything is mounted or fetched.
struct Access: Sendable {
  /// For each URL's own origin; the fields of a list below a URL take precedence.
  private var fields = HTTPFields()
  private var netrc: Netrc?
  /// The configuration of the client.
  private(set) var configuration = TransferClient.Configuration()
  let connectTimeout: Duration
  /// Nil for the command's own default.
  let stallTimeout: Duration?

  /// Reads the files and variables of the options.
  ///
  /// - Parameters:
  ///   - options: of the command line.
  ///   - refusesReserved: whether to refuse fields that would change the meaning of a range
  ///     request.
  /// - Throws: ``CommandFailure``; it never contains a value.
  init(_ options: AccessOptions, refusesReserved: Bool = false) throws(CommandFailure) {
    connectTimeout = options.connectTimeout?.duration ?? .seconds(10)
    stallTimeout = options.stallTimeout?.duration
    fields = try HeaderOptions(refusesReserved: refusesReserved).fields(of: options)
    netrc = try Self.netrc(options)
    if let userAgent = options.userAgent {
      guard let field = HeaderField(name: "User-Agent", value: userAgent) else {
        throw CommandFailure("--user-agent holds a control character; give it on one line")
      }
      configuration.userAgent = field.value
    }
    try setTrust(options)
    if let text = options.proxy {
      do {
        configuration.proxies = try ProxyList(text)
      } catch {
        throw CommandFailure("--proxy: \(error)")
      }
    }
    configuration.proxyExceptions = options.noProxy
    if options.usesIPv4Only { configuration.addressFamily = .ipv4 }
    if options.usesIPv6Only { configuration.addressFamily = .ipv6 }
    if let interface = options.interface { configuration.interface = try Self.checked(interface) }
    if let file = options.cookieFile { configuration.cookies = try Self.cookies(ofFile: file) }
  }

  // MARK: Requests

  /// The fields for an entry of a list: its own, and those fields of the options that it lacks.
  func fields(for entry: SourceEntry) -> HTTPFields {
    var own = HTTPFields()
    for header in entry.headers {
      guard let name = HTTPField.Name(header.name) else { continue }
      own.append(HTTPField(name: name, value: header.value))
    }
    var all = own
    for field in fields where own[field.name] == nil { all.append(field) }
    return all
  }

  /// The URL with the credentials of netrc for its host, unless it has a password.
  ///
  /// They are then sent like credentials of a URL: to its own origin, and to no other origin after
  /// a redirect.
  func url(_ url: RemoteURL) -> RemoteURL {
    guard let netrc else { return url }
    let userInfo = url.userInfo
    if let userInfo, userInfo.contains(":") { return url }
    let user = userInfo.map { URLResolver.decoded($0[...]) }
    guard let found = netrc.credentials(forHost: url.host, user: user) else { return url }
    return url.withUserInfo(user: found.user, password: found.password) ?? url
  }

  // MARK: Reading

  private static func netrc(_ options: AccessOptions) throws(CommandFailure) -> Netrc? {
    guard options.usesNetrc || options.netrcFile != nil else { return nil }
    guard let path = options.netrcFile ?? homeDirectory().map({ "\($0)/.netrc" }) else {
      throw CommandFailure("no home directory for .netrc; name the file with --netrc-file")
    }
    return try netrc(ofFile: path)
  }

  /// Reads a netrc file, which must be private.
  static func netrc(ofFile path: String) throws(CommandFailure) -> Netrc {
    try requirePrivacy(ofFile: path, "netrc file")
    let bytes = try accessFile(path, "netrc file")
    do {
      return try Netrc(bytes)
    } catch {
      throw CommandFailure("the netrc file '\(path)', \(error)")
    }
  }

  private mutating func setTrust(_ options: AccessOptions) throws(CommandFailure) {
    configuration.verifiesServers = !options.isInsecure
    if let path = options.certificateAuthorities { try setAuthorities(path) }
    guard let certificate = options.certificate else { return }
    let key = options.certificateKey ?? certificate
    let certificateBytes = try accessFile(certificate, "client certificate")
    let keyBytes = try accessFile(key, "private key")
    do {
      try CertificateCheck.checkPair(certificate: certificateBytes, key: keyBytes)
    } catch {
      throw CommandFailure("the client certificate '\(certificate)' cannot be used: \(error)")
    }
    configuration.clientCertificate = .init(
      certificateFile: lastingPath(certificate), keyFile: lastingPath(key))
  }

  private mutating func setAuthorities(_ path: String) throws(CommandFailure) {
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw CommandFailure("cannot read the certificate authorities '\(path)'", .last)
    }
    if status.st_mode & S_IFMT == S_IFDIR {
      guard Self.holdsHashedName(path) else {
        throw CommandFailure(
          "the directory '\(path)' holds no certificate authority by its hash: run 'openssl rehash' on it"
        )
      }
      configuration.certificateAuthorityDirectory = lastingPath(path)
      return
    }
    let bytes = try accessFile(path, "certificate authorities")
    do {
      try CertificateCheck.checkAuthorities(bytes)
    } catch {
      throw CommandFailure("the certificate authorities '\(path)' cannot be used: \(error)")
    }
    configuration.certificateAuthorityFile = lastingPath(path)
  }

  /// Whether a directory contains a name such as `9d66eef0.0`, by which OpenSSL finds an authority.
  private static func holdsHashedName(_ path: String) -> Bool {
    guard let directory = opendir(path) else { return false }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        Array(bytes.prefix { $0 != 0 })
      }
      guard name.count >= 10, name[8] == UInt8(ascii: ".") else { continue }
      let isHash = name[..<8].allSatisfy {
        (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
      }
      if isHash, name[9...].allSatisfy({ (0x30...0x39).contains($0) }) { return true }
    }
    return false
  }

  /// Checks that an interface exists, or that it is an address; libcurl's own forms (`if!`,
  /// `host!`) are accepted.
  private static func checked(_ interface: String) throws(CommandFailure) -> String {
    guard
      if_nametoindex(interface) != 0 || AddressGuard.address(interface) != nil
        || interface.hasPrefix("if!") || interface.hasPrefix("host!")
    else {
      throw CommandFailure(
        "--interface: there is no network interface of that name (see 'ip link')")
    }
    return interface
  }

  /// The lines of a cookie file: seven fields separated by TABs.
  private static func cookies(ofFile path: String) throws(CommandFailure) -> [String] {
    var lines: [String] = []
    for (number, line) in numberedLines(try accessFile(path, "cookie file")) {
      let isComment = line.hasPrefix("#") && !line.hasPrefix("#HttpOnly_")
      if isComment || line.allSatisfy(\.isWhitespace) { continue }
      // An empty value at the end may have lost its TAB.
      let count = line.split(separator: "\t", omittingEmptySubsequences: false).count
      guard (6...7).contains(count), line.utf8.allSatisfy({ $0 >= 0x20 || $0 == 0x09 }) else {
        throw CommandFailure(
          "\(path):\(number): a cookie is seven fields with a TAB between them (Netscape's format)")
      }
      lines.append(line)
    }
    return lines
  }
}
