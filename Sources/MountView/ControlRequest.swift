package import MountControl

/// A request of the view to the mount.
package enum ControlRequest: Hashable, Sendable {
  /// A verb for one file; for all files if the name is nil.
  case file(FileVerb, name: String?)
  /// A number, or `auto`.
  case connections(String)
  /// Bytes per second, as `10M`; 0 for no limit.
  case rateLimit(String)

  /// The arguments of the `httpfs` command for this request.
  ///
  /// - Parameter mountpoint: an absolute path.
  /// - Returns: the words after `httpfs`.
  package func arguments(mountpoint: String) -> [String] {
    switch self {
    case .file(let verb, nil): [verb.rawValue, mountpoint]
    case .file(let verb, let name?): [verb.rawValue, "--", mountpoint, Self.literal(name)]
    case .connections(let count): ["connections", mountpoint, count]
    case .rateLimit(let rate): ["rate-limit", mountpoint, rate]
    }
  }

  /// The request in a few words.
  var description: String {
    switch self {
    case .file(.refresh, nil): "refresh the list"
    case .file(let verb, nil): "\(verb.rawValue) all files"
    case .file(let verb, let name?): "\(verb.rawValue) \(name)"
    case .connections(let count): "connections \(count)"
    case .rateLimit(let rate): "rate-limit \(rate)"
    }
  }

  /// The pattern (``NamePattern``) that matches only this name.
  private static func literal(_ name: String) -> String {
    guard NamePattern(name).hasWildcards else { return name }
    return String(
      String.UnicodeScalarView(
        name.unicodeScalars.flatMap { scalar -> [Unicode.Scalar] in
          ["*", "?", "[", "\\"].contains(scalar) ? ["\\", scalar] : [scalar]
        }))
  }
}
