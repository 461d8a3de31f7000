/// Why the answer to the request for a directory is no listing that can be shown.
///
/// A part of a listing is never shown: a tool would take the names that are absent for deleted.
public enum ListingError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The media type is not HTML; nil where the response names none.
  case notHTML(String?)
  case tooLarge
  case tooManyEntries
  case tooManyLinks
  /// A tag, with its attributes, as no listing has one.
  case tagTooLong

  /// The most bytes of a listing: nginx needs some 150 for a file, Apache's table 200, Caddy 600.
  public static let maximumByteCount = 16 << 20

  /// The most names of one directory.
  public static let maximumEntryCount = 100_000

  /// The most links, wherever they lead: a name may have a picture and a menu that link it, too.
  public static let maximumLinkCount = 4 * maximumEntryCount

  public var description: String {
    switch self {
    case .notHTML(let type):
      // It came from the network: no more of it than a type has.
      "no HTML listing, but " + (type.map { "'\($0.prefix(80))'" } ?? "something without a type")
    case .tooLarge: "a listing of more than \(Self.maximumByteCount >> 20) MiB"
    case .tooManyEntries: "a listing of more than \(Self.maximumEntryCount) names"
    case .tooManyLinks: "a listing of more than \(Self.maximumLinkCount) links"
    case .tagTooLong:
      "no listing: a tag of more than \(HTMLLinks.maximumTagByteCount >> 10) KiB or"
        + " \(HTMLLinks.maximumAttributeCount) attributes"
    }
  }
}
