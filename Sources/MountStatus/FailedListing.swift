internal import TextFormat

/// A directory of the mount whose server has not sent its current listing.
package struct FailedListing: Sendable, Hashable, Decodable {
  /// The path relative to the mount point, with a `/` at its end; `/` for the mount itself.
  package var directory: String

  /// The URL of the listing, without userinfo.
  package var url: String

  /// Why the last question failed, in a few words, without secrets.
  package var reason: String

  /// Whether the directory still shows the names of an earlier listing.
  package var showsEarlierNames: Bool

  package init(directory: String, url: String, reason: String, showsEarlierNames: Bool) {
    self.directory = directory
    self.url = url
    self.reason = reason
    self.showsEarlierNames = showsEarlierNames
  }

  enum CodingKeys: String, CodingKey {
    case directory, url, reason
    case showsEarlierNames = "shows_earlier_names"
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(CodingKeys.directory, directory)
      writer.member(CodingKeys.url, url)
      writer.member(CodingKeys.reason, reason)
      writer.member(CodingKeys.showsEarlierNames, showsEarlierNames)
    }
  }

  /// The line of `.status` and of the live view; control characters are not escaped.
  package var textLine: String {
    showsEarlierNames
      ? "the listing of '\(directory)' may be out of date: \(reason)"
      : "no listing of '\(directory)': \(reason)"
  }
}
