/// One of the options of mount(8) and fstab(5), after `-o`.
struct MountOption: Equatable {
  let name: String
  /// The text after `=`; nil if there is none.
  let value: String?

  /// How the mount helper handles an option.
  enum Meaning: Equatable {
    /// An option of `httpfs mount`, in its form.
    case option(String)
    /// It matters only to mount(8), or a mount does it anyway.
    case none
    /// The mount works but ignores the option, which is reported.
    case ignored(reason: String)
    /// The helper must not mount.
    case refused(reason: String)
  }

  /// Splits `a,b=c,d="e,f"`; double quotes keep a value together, as in libmount.
  static func list(_ text: String) -> [MountOption] {
    var words: [String] = [""]
    var isQuoted = false
    for character in text {
      switch character {
      case "\"": isQuoted.toggle()
      case "," where !isQuoted: words.append("")
      default: words[words.count - 1].append(character)
      }
    }
    return words.filter { !$0.isEmpty }.map { word in
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return MountOption(
        name: String(parts[0]), value: parts.count == 2 ? String(parts[1]) : nil)
    }
  }

  var meaning: Meaning {
    if Self.withoutMeaning.contains(name) || name.hasPrefix("x-") || name.hasPrefix("X-") {
      return .none
    }
    switch name {
    case "fmask", "dmask":
      return .ignored(reason: "there is one for files and directories, umask")
    case "remount", "bind", "rbind", "move":
      return .refused(reason: "unmount, and mount again with the new options")
    case "header":
      return .refused(
        reason: "everybody may read it; put it into a private file and name that, header-file=FILE")
    case "proxy" where value?.contains("@") == true:
      return .refused(
        reason: "everybody may read the password; use the service httpfs@.service instead")
    default:
      return .option(longOption)
    }
  }

  /// Replaces each `-o OPTIONS` of the command line of `httpfs mount` by long options.
  ///
  /// Options that only matter to mount(8) are dropped.
  static func expanded(_ words: [String]) -> [String] {
    guard words.first == "mount" else { return words }
    var expanded: [String] = []
    var rest = words[...]
    while let word = rest.popFirst() {
      if word == "--" { return expanded + [word] + rest }
      guard word == "-o", let options = rest.popFirst() else {
        expanded.append(word)
        continue
      }
      for option in list(options) {
        switch option.meaning {
        case .option(let long): expanded.append(long)
        case .none: break
        // The command line is as private with -o as without.
        case .ignored, .refused: expanded.append(option.longOption)
        }
      }
    }
    return expanded
  }

  /// The option of `httpfs mount` of this name.
  private var longOption: String {
    let option = "--" + name.replacing("_", with: "-")
    return value.map { "\(option)=\($0)" } ?? option
  }

  /// Options of mount(8) for every file system, and of FUSE's helper, that always apply here: the
  /// files are read-only, without devices and set-user-id programs, and have no access times.
  private static let withoutMeaning: Set<String> = [
    "defaults", "ro", "rw", "auto", "noauto", "nofail", "_netdev", "comment", "user", "nouser",
    "users", "nousers", "owner", "noowner", "group", "nogroup", "suid", "nosuid", "dev", "nodev",
    "exec", "sync", "async", "dirsync", "atime", "noatime", "diratime", "nodiratime", "relatime",
    "norelatime", "strictatime", "nostrictatime", "lazytime", "nolazytime", "mand", "nomand",
    "silent", "loud", "iversion", "noiversion", "default_permissions", "nonempty",
  ]
}
