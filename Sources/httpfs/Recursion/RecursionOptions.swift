import ArgumentParser
import DirectoryListing

/// The options of `httpfs get` for directory listings.
struct RecursionOptions: ParsableArguments {
  @Flag(
    name: [.short, .long],
    help: """
      Download the files of directory listings (URLs that end in '/'), and of those below, except \
      for names that begin with a dot (--include '.*').
      """)
  var recursive = false

  @Option(
    help: ArgumentHelp(
      "With -r, only files whose path below the listing, or last name, matches; may be repeated.",
      valueName: "glob"))
  var include: [String] = []

  @Option(
    help: ArgumentHelp(
      "With -r, no files and directories that match; may be repeated.", valueName: "glob"))
  var exclude: [String] = []

  @Option(
    help: ArgumentHelp(
      "With -r, how many levels of directories below the listing to read, from 0 to 32.",
      valueName: "n"))
  var depth: Int?

  func validate() throws {
    if !recursive, !include.isEmpty || !exclude.isEmpty || depth != nil {
      throw ValidationError("--include, --exclude and --depth choose files of -r; add -r")
    }
    guard (0...DirectoryListing.maximumDepth).contains(depth ?? 0) else {
      throw ValidationError("--depth must be from 0 to \(DirectoryListing.maximumDepth)")
    }
  }

  var filter: ListingFilter {
    ListingFilter(
      include: include, exclude: exclude, depth: depth ?? DirectoryListing.maximumDepth)
  }
}
