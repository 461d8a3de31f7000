internal import CCurl
internal import Glibc
package import HTTPTransferCore

/// Decides which addresses an exchange may connect to: a redirect from the Internet must not lead
/// to this machine, or to a network that only this machine can reach.
///
/// Addresses that the user names are allowed. A value of one exchange; only the network thread uses
/// it.
///
/// The address behind a proxy is unknown. So a name that is requested through a proxy counts as
/// public: it must not redirect to a private address that is reached without the proxy, nor to a
/// private address in the redirect's URL itself. The proxy decides about the names that it
/// resolves.
package struct AddressGuard: Sendable {
  /// Whether the exchange got a response from, or follows a redirect from, a public address.
  private var cameFromPublicAddress: Bool
  /// Whether the current hop follows a redirect.
  private var isRedirected: Bool
  /// Whether the addresses are those of a proxy, which tell nothing about the server.
  private var isProxied = false
  /// The address in the hop's URL, if it has one instead of a name.
  private var namedAddress: IPAddress?
  /// The address that was refused on the current hop.
  package private(set) var refused: String?

  /// - Parameters:
  ///   - isRedirected: whether the first hop follows an earlier redirect.
  ///   - cameFromPublicAddress: whether that redirect came from a public address.
  package init(isRedirected: Bool, cameFromPublicAddress: Bool) {
    self.isRedirected = isRedirected
    self.cameFromPublicAddress = cameFromPublicAddress
  }

  /// Begins the next hop.
  ///
  /// - Parameters:
  ///   - hop: the number of redirects followed so far.
  ///   - isProxied: whether it goes through a proxy.
  ///   - host: the URL's host, without brackets.
  package mutating func begin(hop: Int, isProxied: Bool, host: String) {
    if hop > 0 { isRedirected = true }
    self.isProxied = isProxied
    namedAddress = Self.namedAddress(host)
    refused = nil
  }

  /// Whether a connection to `address` may be made or reused.
  package mutating func permits(_ address: IPAddress) -> Bool {
    guard isRedirected, cameFromPublicAddress, !isProxied, address.isPrivate else { return true }
    refused = Self.text(address)
    return false
  }

  /// Whether the hop's host may be requested through a proxy.
  package mutating func permitsHost() -> Bool {
    guard isProxied, isRedirected, cameFromPublicAddress, let namedAddress, namedAddress.isPrivate
    else { return true }
    refused = Self.text(namedAddress)
    return false
  }

  /// Records that the request is about to go to `address`; returns whether that is the server's
  /// public address.
  package mutating func recordRequest(to address: IPAddress) -> Bool {
    let isPublic = isProxied ? namedAddress?.isPrivate != true : !address.isPrivate
    if isPublic { cameFromPublicAddress = true }
    return isPublic
  }

  /// Parses an address in libcurl's format; nil if the text is not an address.
  package static func address(_ text: String) -> IPAddress? {
    var bytes = [UInt8](repeating: 0, count: 16)
    // A zone (`%eth0`) does not belong to the address.
    let plain = String(text.prefix { $0 != "%" })
    if inet_pton(AF_INET, plain, &bytes) == 1 { return IPAddress(bytes: bytes.prefix(4)) }
    return inet_pton(AF_INET6, plain, &bytes) == 1 ? IPAddress(bytes: bytes) : nil
  }

  /// The address that a host represents without a look-up.
  private static func namedAddress(_ name: String) -> IPAddress? {
    // Trailing dots make a name absolute and change nothing else.
    var host = name
    while host.last == "." { host.removeLast() }
    if host == "localhost" || host.hasSuffix(".localhost") { return address("127.0.0.1") }
    if let address = address(host) { return address }
    // Forms such as 127.1 and 0x7f000001, which resolvers accept as addresses.
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
