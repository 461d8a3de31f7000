import CLinux
import ConfigurationFile
import Glibc
import LinuxSystem
import TextFormat

/// The content of a configuration file with its properties.
struct ConfigurationSource {
  let path: String
  let file: ConfigurationFile
  /// Resolves relative paths in it.
  let paths: ConfiguredPaths
  /// Whether users other than its owner can read it.
  private let isReadableByOthers: Bool

  /// For root's mounts, if root has no file of its own.
  private static let systemPath = "/etc/httpfs/config.toml"
  private static let maximumByteCount = 1 << 20

  /// The default configuration file; nil if there is none.
  ///
  /// `$XDG_CONFIG_HOME/httpfs/config.toml`, else `~/.config/httpfs/config.toml` (XDG Base Directory
  /// Specification). For root, if that does not exist, `/etc/httpfs/config.toml`.
  static func usualPath() -> String? {
    candidates().first { access($0, F_OK) == 0 }
  }

  /// The possible paths of the file, in order.
  static func candidates() -> [String] {
    var paths: [String] = []
    // The specification says to ignore relative paths.
    if let base = environmentVariable("XDG_CONFIG_HOME"), base.hasPrefix("/") {
      paths.append("\(base)/httpfs/config.toml")
    } else if let home = homeDirectory() {
      paths.append("\(home)/.config/httpfs/config.toml")
    }
    if geteuid() == 0 { paths.append(systemPath) }
    return paths
  }

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - path: the file.
  ///   - isNamed: whether the user has named it on the command line, and so trusts it.
  /// - Throws: ``CommandFailure`` with path and line.
  init(path: String, isNamed: Bool) throws(CommandFailure) {
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw CommandFailure("cannot read the configuration file '\(path)'", .last)
    }
    // A user who can write it decides what root mounts and where root writes logs.
    guard isNamed || status.st_uid == geteuid() || status.st_uid == 0 else {
      throw CommandFailure(
        "the configuration file '\(path)' belongs to another user; name it with --config if you "
          + "trust it, or use --no-config")
    }
    guard status.st_mode & S_IFMT != S_IFREG || status.st_mode & 0o002 == 0 else {
      throw CommandFailure(
        "the configuration file '\(path)' may be changed by every user: chmod o-w it")
    }
    let bytes: [UInt8]
    do throws(ErrorNumber) {
      bytes = try StreamCalls.contents(ofFile: path, maximumByteCount: Self.maximumByteCount)
    } catch {
      throw CommandFailure("cannot read the configuration file '\(path)'", error)
    }
    do throws(ConfigurationError) {
      file = try ConfigurationFile(bytes)
    } catch {
      throw CommandFailure(escapingControls(error.description(inFile: path)))
    }
    self.path = path
    isReadableByOthers = status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o077 != 0
    paths = ConfiguredPaths(directory: Self.directory(of: path), home: homeDirectory())
  }

  /// The absolute path of a file's directory; links to the file are not followed.
  private static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return lastingPath(".") }
    return slash == path.startIndex ? "/" : lastingPath(String(path[..<slash]))
  }

  /// Refuses a word with a secret that other users can read.
  func requirePrivacy(
    of words: [String], from setting: ConfigurationFile.Setting
  ) throws(ConfigurationError) {
    guard isReadableByOthers else { return }
    let holdsSecret = words.contains { word in
      let bytes = Array(word.utf8)
      return Redaction.hidingSecrets(in: bytes, after: []) != bytes
    }
    guard !holdsSecret else {
      throw ConfigurationError(
        "'\(setting.key)' may be a secret, and other users may read this file: chmod 600 it, and "
          + "change the secret if others are on this machine", line: setting.line)
    }
  }
}
