import Glibc
import HTTPTransferCore
import Testing

/// The addresses that are not reachable over the Internet.
@Suite struct IPAddressTests {
  private func address(_ text: String) throws -> IPAddress {
    var bytes = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET, text, &bytes) == 1 {
      return try #require(IPAddress(bytes: bytes.prefix(4)))
    }
    try #require(inet_pton(AF_INET6, text, &bytes) == 1, "\(text)")
    return try #require(IPAddress(bytes: bytes))
  }

  @Test(
    "Addresses of this machine and of networks of one's own are private",
    arguments: [
      "0.0.0.0", "0.1.2.3", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255",
      "127.0.0.1", "127.255.255.255", "169.254.0.1", "169.254.169.254", "172.16.0.0",
      "172.31.255.255", "192.168.0.0", "192.168.255.255", "::", "::1", "fc00::1", "fd12:3456::1",
      "fdff:ffff::", "fe80::1", "febf::1", "fec0::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1",
      "::ffff:0.0.0.0", "64:ff9b::192.168.1.1", "64:ff9b:1::8.8.8.8", "2002:0a00:0001::1",
      "2002:7f00:1::", "::127.0.0.1",
      // Protocols, benchmarks, reserved.
      "192.0.0.0", "192.0.0.192", "192.0.0.255", "198.18.0.1", "198.19.255.255", "240.0.0.1",
      "255.255.255.255", "::ffff:198.18.0.1", "64:ff9b::198.18.0.1", "2002:c612:0001::1",
      // Translated addresses (RFC 2765), and both addresses in a Teredo address.
      "::ffff:0:127.0.0.1", "::ffff:0:10.0.0.1", "2001:0:a00:1::f7f7:f7f7",
      "2001:0:808:808::80ff:fffe", "2001:0:1::1",
    ])
  func isPrivate(text: String) throws {
    #expect(try address(text).isPrivate)
  }

  @Test(
    "All others are public",
    arguments: [
      "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
      "126.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.0", "172.15.255.255",
      "172.32.0.0", "192.167.255.255", "192.169.0.0", "203.0.113.1", "198.51.100.1", "2001:db8::1",
      "2606:4700::1111", "fbff::1", "fe7f::1", "::ffff:203.0.113.1", "64:ff9b::8.8.8.8",
      "2002:0808:0808::1", "ff02::1", "191.255.255.255", "192.0.1.0", "198.17.255.255",
      "198.20.0.0", "239.255.255.255", "::ffff:0:8.8.8.8", "2001:0:808:808::f7f7:f7f7",
      "2001:1::1",
    ])
  func isPublic(text: String) throws {
    #expect(try !address(text).isPrivate)
  }

  @Test("A prefix is compared bit by bit, within one family")
  func prefixes() throws {
    let host = try address("10.1.2.3")
    for (prefix, length, expected) in [
      ("10.1.2.3", 32, true), ("10.1.2.2", 32, false), ("10.1.2.2", 31, true),
      ("10.1.2.128", 25, false), ("10.1.2.127", 25, true), ("255.0.0.0", 0, true),
      ("10.0.0.0", 33, false), ("10.0.0.0", -1, false), ("::", 0, false),
    ] {
      #expect(
        try host.hasPrefix(address(prefix).bytes, length: length) == expected,
        "\(prefix)/\(length)")
    }
  }

  @Test("Only 4 or 16 bytes are an address", arguments: [0, 1, 3, 5, 8, 15, 17])
  func lengths(count: Int) {
    #expect(IPAddress(bytes: [UInt8](repeating: 1, count: count)) == nil)
  }
}
