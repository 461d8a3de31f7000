internal import Glibc
package import HTTPTransferCore

/// Which addresses an exchange may be led to: a redirect from the Internet must not reach into this
/// machine, or into a network that only this machine can see.
///
/// What the user names is the user's business. A value of one exchange; the network thread's own.
package struct AddressGuard: Sendable {
  /// Whether the exchange has been answered from, or descends from, a public address.
  private var cameFromPublicAddress: Bool
  /// Whether the present hop goes where a redirect has led.
  private var isRedirected: Bool
  /// Whether the addresses seen are those of a proxy, which say nothing of the server.
  private var isProxied = false
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
  package mutating func begin(hop: Int, isProxied: Bool) {
    if hop > 0 { isRedirected = true }
    self.isProxied = isProxied
    refused = nil
  }

  /// Whether a connection to `address` may be made, or used.
  package mutating func permits(_ address: IPAddress) -> Bool {
    guard isRedirected, cameFromPublicAddress, !isProxied, address.isPrivate else { return true }
    refused = Self.text(address)
    return false
  }

  /// The request is about to go to `address`; whether that is a public one.
  package mutating func noteRequest(to address: IPAddress) -> Bool {
    let isPublic = !isProxied && !address.isPrivate
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

  private static func text(_ address: IPAddress) -> String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let family = address.bytes.count == 4 ? AF_INET : AF_INET6
    guard inet_ntop(family, address.bytes, &text, socklen_t(text.count)) != nil else {
      return "?"
    }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
