import Foundation
import Glibc

/// The directories behind a server's `/upload/` and `/private/`, separate from its read-only root.
struct WritableArea {
  /// The directory that contains `upload` and `private`.
  let root: String
  /// The file of user names and password hashes; nil without credentials.
  let passwordFile: String?

  /// Creates the directories and the password file.
  ///
  /// - Parameters:
  ///   - directory: the server's own directory.
  ///   - features: determines whether there is a password file.
  ///   - owner: the user of the server's processes; nil for the user of the tests.
  /// - Throws: `HarnessError` if a directory cannot be handed over or `openssl` fails.
  init(in directory: String, features: ServerFeatures, owner: String? = nil) throws {
    root = "\(directory)/writable"
    for name in ["upload", "private"] {
      let path = "\(root)/\(name)"
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    // Include the directory itself: Apache keeps the locks of WebDAV there.
    if let owner { try output(of: ["chown", "--recursive", owner, root]) }
    guard let credentials = features.credentials else {
      passwordFile = nil
      return
    }
    // nginx and Apache both support Apache's variant of MD5; the password needs no protection.
    let hash = try output(of: ["openssl", "passwd", "-apr1", credentials.password])
    let path = "\(directory)/passwords"
    try "\(credentials.user):\(hash)".write(toFile: path, atomically: true, encoding: .utf8)
    passwordFile = path
  }

  /// The path on disk of a resource, such as `upload/a.bin`.
  func path(of path: String) -> String { "\(root)/\(path)" }
}
