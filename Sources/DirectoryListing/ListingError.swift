/// Why the response for a directory cannot be shown as a listing.
///
/// A partial listing is never shown, because a tool would take the missing names for deleted files.
package enum ListingError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The media type is not HTML; nil if the response has no media type.
  case notHTML(String?)
  case tooLarge
  case tooManyEntries
  case tooManyLinks
  /// A tag that, with its attributes, is longer than any in a listing.
  case tagTooLong

  /// The maximum length of a listing: nginx needs some 150 bytes per file, Apache's table 200,
  /// Caddy 600.
  package static let maximumByteCount = 16 << 20

  /// The most names of one directory.
  package static let maximumEntryCount = 100_000

  /// The maximum number of links of any kind: a picture and a menu may link each name too.
  package static let maximumLinkCount = 4 * maximumEntryCount

  package var description: String {
    switch self {
    case .notHTML(let type):
      // It comes from the network, so show no more than the length of a real type.
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
