/// A link to a resource that is valid for some time, as in object stores.
///
/// It has a path, an expiry, and a signature over both. The signature is a keyed hash. It protects
/// nothing, because the key is in this file.
package struct SignedLink: Equatable, Sendable {
  private static let key = "a link of the origin"

  /// The target of `/signed/NAME` is below this path.
  private static let resources = "/data/"
  private static let prefix = "/signed/"

  /// The names of the signature's parameters, and of the parameter that requests a link.
  private static let ownNames: Set<String> = ["expires", "signature", "lifetime"]

  package let path: String
  /// Seconds since 1970.
  package let expires: Int64

  package init(path: String, expires: Int64) {
    self.path = path
    self.expires = expires
  }

  package var signature: String {
    var hash = FNV1a()
    Array("\(Self.key)\n\(path)\n\(expires)".utf8).withUnsafeBytes { hash.update($0) }
    return hash.text
  }

  /// Whether a request with these parameters may read the resource at `path`.
  ///
  /// Its signature must be right, and it must not have expired.
  package static func permits(path: String, query: [String: String], now: Int64) -> Bool {
    guard let expires = query["expires"].flatMap({ ByteText.decimal($0) }), now < expires else {
      return false
    }
    return query["signature"] == SignedLink(path: path, expires: expires).signature
  }

  /// The target of `/signed/NAME`: `/data/NAME` with the same parameters and a signature.
  ///
  /// - Parameters:
  ///   - request: the request for the link.
  ///   - lifetime: how long the link stays valid, in seconds.
  ///   - now: seconds since 1970.
  /// - Returns: a path with a query; nil for other paths.
  package static func location(
    for request: RequestHead, lifetime: Int64, now: Int64
  ) -> String? {
    guard request.path.hasPrefix(prefix) else { return nil }
    let path = resources + request.path.dropFirst(prefix.count)
    let link = SignedLink(path: path, expires: now + lifetime)
    let query = request.target.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
    let kept = query.split(separator: "&").filter {
      !ownNames.contains(String($0.prefix { $0 != "=" }))
    }
    let own = ["require-signature=yes", "expires=\(link.expires)", "signature=\(link.signature)"]
    return path + "?" + (kept.map(String.init) + own).joined(separator: "&")
  }
}
