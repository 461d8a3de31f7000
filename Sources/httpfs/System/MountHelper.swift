import ArgumentParser
import Glibc

/// This program as a helper of mount(8), under the name `mount.httpfs` or `mount.fuse.httpfs`:
/// converts its command line to one of `httpfs mount --daemon`.
///
/// `mount.TYPE SOURCE MOUNTPOINT [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]`, see "External
/// helpers" in mount(8).
struct MountHelper {
  /// `mount.httpfs`, the name in its messages.
  private let name: String
  private var positionals: [String] = []
  private var options: [MountOption] = []
  /// `-s`: ignore unknown options.
  private var isSloppy = false
  /// `-f`: do everything except the mount itself.
  private var isFake = false

  /// The exit statuses of mount(8).
  private enum ExitStatus {
    static let badUsage: Int32 = 1
    static let failure: Int32 = 32
  }

  /// Why nothing is mounted.
  private struct Refusal: Error {
    let reason: String
  }

  /// Nil if `program`, the name by which this program was called, is not a helper's name.
  init?(program: String) {
    name = String(program.split(separator: "/").last ?? "")
    guard ["mount.httpfs", "mount.fuse.httpfs"].contains(name) else { return nil }
  }

  /// Mounts, and returns when the mount is ready; in the background process, when it has ended.
  ///
  /// - Parameter arguments: the command line, without the program's name.
  /// - Returns: the exit status.
  mutating func run(_ arguments: [String]) -> Int32 {
    do {
      try parse(arguments)
      let line = try commandLine()
      // The settings of the configuration file are inserted between them.
      let words = try ConfiguredArguments(["mount"] + line.options, defaults: line.defaults).words
      guard !isFake else { return 0 }
      // mount(8) prints nothing on success.
      if !DaemonProcess.isDaemon { replaceWithNull([STDOUT_FILENO]) }
      var command = try HTTPFS.parseAsRoot(words)
      do {
        try command.run()
      } catch {
        // The command has already reported why.
        return ExitStatus.failure
      }
      return 0
    } catch let refusal as Refusal {
      printToStandardError("\(name): \(refusal.reason)")
    } catch {
      printToStandardError("\(name): \(HTTPFS.message(for: error))")
    }
    return ExitStatus.badUsage
  }

  private mutating func parse(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "-o": options += MountOption.list(rest.popFirst() ?? "")
      // The helper's name contains the type, and mount(8) enters namespaces itself.
      case "-t", "-N": _ = rest.popFirst()
      case _ where argument.hasPrefix("-") && argument.count > 1:
        for letter in argument.dropFirst() {
          switch letter {
          case "s": isSloppy = true
          case "f": isFake = true
          case "n", "v": break
          default: throw Refusal(reason: "unknown option '\(argument)'; \(Self.usage)")
          }
        }
      default: positionals.append(argument)
      }
    }
    guard positionals.count == 2 else { throw Refusal(reason: Self.usage) }
  }

  private static let usage =
    "usage: mount -t fuse.httpfs [-o OPTIONS] SOURCE MOUNTPOINT (see mount.httpfs(8))"

  /// The command line of `httpfs mount`: our additions, and the given options, which win.
  private func commandLine() throws -> (defaults: [String], options: [String]) {
    let (source, mountpoint) = (positionals[0], positionals[1])
    // The network may come later.
    var defaults = ["--daemon", "--no-check"]
    if let name = ShownSource.name(of: source) { defaults.append("--fsname=\(name)") }
    if let directory = Self.cacheDirectory(ofMountpoint: mountpoint) {
      defaults.append("--cache-dir=\(directory)")
    }
    var words: [String] = []
    for option in options {
      switch option.meaning {
      case .none: continue
      case .ignored(let reason):
        if !DaemonProcess.isDaemon {
          printToStandardError("\(name): warning: option '\(option.name)' is ignored: \(reason)")
        }
      case .refused(let reason):
        throw Refusal(reason: "option '\(option.name)' is refused: \(reason)")
      case .option(let word):
        guard Self.isKnown(word) else {
          if isSloppy { continue }
          throw Refusal(
            reason: "unknown option '\(option.name)'; those of 'httpfs mount' are known, "
              + "without their dashes (see mount.httpfs(8))")
        }
        words.append(word)
      }
    }
    return (defaults, words + ["--", source, mountpoint])
  }

  /// Whether `httpfs mount` has the option, with any value.
  private static func isKnown(_ word: String) -> Bool {
    do {
      _ = try HTTPFS.parseAsRoot(["mount", word, "SOURCE", "MOUNTPOINT"])
      return true
    } catch {
      return !HTTPFS.message(for: error).hasPrefix("Unknown option")
    }
  }

  /// A separate cache directory for this mount point, because mounts cannot share one; nil if the
  /// user is not root and can use the default directory.
  private static func cacheDirectory(ofMountpoint mountpoint: String) -> String? {
    guard geteuid() == 0 else { return nil }
    var path = mountpoint
    if let resolved = realpath(mountpoint, nil) {
      path = String(cString: resolved)
      free(resolved)
    }
    return "/var/cache/httpfs/\(escapedName(ofPath: path))"
  }

  /// A path as one name, in the form of systemd-escape(1): `/mnt/a-b` becomes `mnt-a\x2db`.
  static func escapedName(ofPath path: String) -> String {
    let parts = path.utf8.split(separator: UInt8(ascii: "/"))
    guard !parts.isEmpty else { return "-" }
    let escaped = parts.enumerated().map { index, part in
      part.enumerated().map { position, byte in
        let scalar = Unicode.Scalar(byte)
        let isLetterOrDigit =
          scalar.isASCII && scalar.properties.isAlphabetic
          || (0x30...0x39).contains(byte)
        let isPlain = isLetterOrDigit || ":_.".unicodeScalars.contains(scalar)
        if isPlain, !(index == 0 && position == 0 && scalar == ".") { return String(scalar) }
        let digits = String(byte, radix: 16)
        return "\\x" + (digits.count == 1 ? "0" : "") + digits
      }.joined()
    }
    return escaped.joined(separator: "-")
  }
}
