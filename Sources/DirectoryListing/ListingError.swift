/// Why the answer to the request for a directory is no listing that can be shown.
///
/// A part of a listing is never shown: a tool would take the names that are absent for deleted.
public enum ListingError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The media type is not HTML; nil where the response names none.
  case notHTML(String?)
  case tooLarge
  case tooManyEntries
  /// Elements inside elements inside elements, as no listing has them.
  case tooDeeplyNested
  case outOfMemory
  /// libxml2 is not installed.
  case parserMissing

  /// The most bytes of a listing: nginx needs some 150 for a file, Apache's table 200, Caddy 600.
  public static let maximumByteCount = 16 << 20

  /// The most names of one directory.
  public static let maximumEntryCount = 100_000

  /// How many elements may be open at once; listings have fewer than ten.
  static let maximumNesting = 128

  public var description: String {
    switch self {
    case .notHTML(let type):
      // It came from the network: no more of it than a type has.
      "no HTML listing, but " + (type.map { "'\($0.prefix(80))'" } ?? "something without a type")
    case .tooLarge: "a listing of more than \(Self.maximumByteCount >> 20) MiB"
    case .tooManyEntries: "a listing of more than \(Self.maximumEntryCount) names"
    case .tooDeeplyNested: "no listing: its HTML is nested too deeply"
    case .outOfMemory: "no memory for the listing"
    case .parserMissing: "listings need libxml2, which is not there; install the package libxml2"
    }
  }
}
