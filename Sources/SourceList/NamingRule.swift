package import HTTPTransferCore

/// Whether the URLs of files without `out=` name them, or their servers do.
package enum NamingRule: Sendable {
  /// The URL names every file.
  case byURL
  /// The server is asked if the last name of the URL is unlikely to be that of the file.
  case byServerIfUnclear
  /// The server is asked for every name.
  case byServer

  /// Whether the server of a file is asked for its name.
  package func asks(about url: RemoteURL) -> Bool {
    switch self {
    case .byURL: false
    case .byServer: true
    case .byServerIfUnclear: !url.hasFileName
    }
  }
}

extension RemoteURL {
  /// The extensions of programs, which answer with files of other names.
  private static let programs: Set<String> = [
    "action", "ashx", "asp", "aspx", "axd", "cfm", "cgi", "dll", "do", "fcgi", "jsp", "jspx", "php",
    "php3", "php4", "php5", "phtml", "pl",
  ]

  /// The extensions of pages that a query may turn into other files.
  private static let pages: Set<String> = ["htm", "html", "xhtml"]

  /// The maximum length of an extension.
  private static let maximumExtensionLength = 10

  /// Whether the last name of the path has the extension of a file, and nothing else in the URL
  /// says that the server gives the file another name.
  fileprivate var hasFileName: Bool {
    let name =
      path.utf8.split(
        separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
      ).last ?? Substring().utf8
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else {
      return false
    }
    let ending = String(Substring(name[name.index(after: dot)...])).lowercased()
    let isLetter = { (byte: UInt8) in (0x61...0x7A).contains(byte) }
    // A number is that of a version.
    guard ending.utf8.count <= Self.maximumExtensionLength, ending.utf8.contains(where: isLetter),
      ending.utf8.allSatisfy({ isLetter($0) || (0x30...0x39).contains($0) }),
      !Self.programs.contains(ending)
    else { return false }
    guard let query = query?.lowercased() else { return true }
    // Signed URLs of S3, Google and Azure make the server send the field.
    let requestsField =
      query.contains("content-disposition")
      || query.split(separator: "&").contains { $0.hasPrefix("rscd=") }
    return !requestsField && !Self.pages.contains(ending)
  }
}
