internal import CCurl
internal import Glibc
package import HTTPTransferCore

/// Which addresses an exchange may be led to: a redirect from the Internet must not reach into this
/// machine, or into a network that only this machine can see.
///
/// What the user names is the user's business. A value of one exchange; the network thread's own.
///
/// The address behind a proxy is not known: a name that is asked through one counts as public, so that
/// it leads to no private address that is reached without the proxy, and to none that the redirect's URL
/// itself holds. What names a proxy resolves is left to the proxy.
package struct AddressGuard: Sendable {
  /// Whether the exchange has been answered from, or descends from, a public address.
  private var cameFromPublicAddress: Bool
  /// Whether the present hop goes where a redirect has led.
  private var isRedirected: Bool
  /// Whether the addresses seen are those of a proxy, which say nothing of the server.
  private var isProxied = false
  /// The address that the hop's URL holds in the place of a name.
  private var namedAddress: IPAddress?
  /// The address that was refused on the present hop.
  package private(set) var refused: String?

  /// - Parameters:
  ///   - isRedirected: whether the first hop goes where an earlier redirect has led.
  ///   - cameFromPublicAddress: whether that redirect came from a public address.
  package init(isRedirected: Bool, cameFromPublicAddress: Bool) {
    self.isRedirected = isRedirected
    self.cameFromPublicAddress = cameFromPublicAddress
  }

  /// The next hop begins.
  ///
  /// - Parameters:
  ///   - hop: how many redirects have been followed.
  ///   - isProxied: whether it goes through a proxy.
  ///   - host: the URL's, without brackets.
  package mutating func begin(hop: Int, isProxied: Bool, host: String) {
    if hop > 0 { isRedirected = true }
    self.isProxied = isProxied
    namedAddress = Self.namedAddress(host)
    refused = nil
  }

  /// Whether a connection to `address` may be made, or used.
  package mutating func permits(_ address: IPAddress) -> Bool {
    guard isRedirected, cameFromPublicAddress, !isProxied, address.isPrivate else { return true }
    refused = Self.text(address)
    return false
  }

  /// Whether a proxy may be asked for the hop's host.
  package mutating func permitsHost() -> Bool {
    guard isProxied, isRedirected, cameFromPublicAddress, let namedAddress, namedAddress.isPrivate
    else { return true }
    refused = Self.text(namedAddress)
    return false
  }

  /// The request is about to go to `address`; whether the server's is a public one.
  package mutating func noteRequest(to address: IPAddress) -> Bool {
    let isPublic = isProxied ? namedAddress?.isPrivate != true : !address.isPrivate
    if isPublic { cameFromPublicAddress = true }
    return isPublic
  }

  /// An address as libcurl writes it; nil for a text that is none.
  package static func address(_ text: String) -> IPAddress? {
    var bytes = [UInt8](repeating: 0, count: 16)
    // A zone (`%eth0`) is no part of the address.
    let plain = String(text.prefix { $0 != "%" })
    if inet_pton(AF_INET, plain, &bytes) == 1 { return IPAddress(bytes: bytes.prefix(4)) }
    return inet_pton(AF_INET6, plain, &bytes) == 1 ? IPAddress(bytes: bytes) : nil
  }

  /// The address that a host stands for without any look-up.
  private static func namedAddress(_ name: String) -> IPAddress? {
    // Dots at the end make a name absolute, and change nothing else.
    var host = name
    while host.last == "." { host.removeLast() }
    if host == "localhost" || host.hasSuffix(".localhost") { return address("127.0.0.1") }
    if let address = address(host) { return address }
    // Forms such as 127.1 and 0x7f000001, which resolvers take for addresses.
    var number = in_addr()
    guard host.first?.isNumber == true, inet_aton(host, &number) != 0 else { return nil }
    return withUnsafeBytes(of: &number.s_addr) { IPAddress(bytes: Array($0)) }
  }

  private static func text(_ address: IPAddress) -> String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let family = address.bytes.count == 4 ? AF_INET : AF_INET6
    guard inet_ntop(family, address.bytes, &text, socklen_t(text.count)) != nil else {
      return "?"
    }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
