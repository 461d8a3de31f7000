/// Which URLs of a list that end in `/` are directory listings.
package enum ListingRule: Sendable {
  /// None: each is a file, which needs a name.
  case never
  /// Those without `out=`, which names a file.
  case unnamed
  /// All.
  case always
}
