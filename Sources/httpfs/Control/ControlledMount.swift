import CLinux
import Glibc
import LinuxSystem
import MountControl
import MountStatus
import TextFormat

/// A mount whose `.control` this command writes to.
struct ControlledMount {
  /// The mount point as the user named it.
  private let shown: String
  private let mount: MountTable.Entry

  init(at path: String) throws(CommandFailure) {
    shown = path
    mount = try httpfsMount(at: path)
  }

  /// Applies `verb` to the files that `names` match.
  ///
  /// - Throws: ``CommandFailure`` with a line for each name that matches none; nothing is then
  ///   done.
  func perform(_ verb: FileVerb, _ names: [String]) throws(CommandFailure) {
    try perform(verb.rawValue, names, verb)
  }

  /// Executes `command` for the names after it.
  ///
  /// - Throws: as ``perform(_:_:)``.
  func perform(
    _ command: String, _ names: [String], _ verb: FileVerb? = nil
  ) throws(CommandFailure) {
    let names = names.map(relative)
    if !names.isEmpty { try check(names, verb) }
    for batch in try batches(command, names) { try write(batch) }
  }

  /// The path below the mount point, if the shell has completed or expanded a longer path.
  private func relative(_ name: String) -> String {
    var given = shown
    while given.hasSuffix("/") { given.removeLast() }
    for prefix in [given + "/", mount.mountpoint + "/"] where name.hasPrefix(prefix) {
      return String(name.dropFirst(prefix.count))
    }
    return name
  }

  /// How long to wait for the mount to read its list.
  private static let reloadLimit = Duration.seconds(10)

  /// Has the mount read its list again, and waits for the result.
  ///
  /// - Throws: ``CommandFailure`` with the reason if the mount keeps its old list.
  func reloadList() throws(CommandFailure) {
    let before = try status().list
    if let before, !before.isReadable {
      throw CommandFailure(
        "the mount at \(shown) has no list file that it could read again; name the files to ask "
          + "the servers about, '*' for all")
    }
    try write("\(FileVerb.refresh.rawValue)\n")
    // An earlier version of httpfs serves the mount, and does not tell.
    guard let before else { return }
    let deadline = ContinuousClock.now + Self.reloadLimit
    // A mount of a million files takes time to tell its state.
    var pause: UInt32 = 5000
    while let list = try status().list, list.isReloading || list.reloads == before.reloads {
      guard .now < deadline else {
        throw CommandFailure(
          "the mount at \(shown) has not read its list yet; 'httpfs status \(shown)' will say if "
            + "it cannot")
      }
      usleep(pause)
      pause = min(pause * 2, 500_000)
    }
    if let line = try status().list?.textLine {
      throw CommandFailure("\(line); the mount keeps its old list")
    }
  }

  private func status() throws(CommandFailure) -> StatusReport {
    let path = "\(mount.mountpoint)/.status.json"
    do {
      return try StatusReport(json: StreamCalls.contents(ofFile: path))
    } catch let error as ErrorNumber {
      throw failure("cannot read '\(path)'", error)
    } catch {
      throw CommandFailure("cannot read '\(path)': \(error)")
    }
  }

  /// Looks up the files of these names without wildcards: files of listings can be named only then.
  ///
  /// - Returns: whether any exists.
  /// - Throws: ``CommandFailure`` if a look-up tells neither that, nor that there is none.
  private func lookUp(_ names: [String]) throws(CommandFailure) -> Bool {
    var isFound = false
    for name in names where !NamePattern(name).hasWildcards {
      var attributes = stat()
      if lstat("\(mount.mountpoint)/\(name)", &attributes) == 0 {
        isFound = true
      } else if ![ENOENT, ENOTDIR, ENAMETOOLONG, EINVAL].contains(errno) {
        throw failure(
          "cannot look up '\(escapingControls(name))' in \(shown), 'httpfs status \(shown)' shows "
            + "why", .last)
      }
    }
    return isFound
  }

  private func check(_ names: [String], _ verb: FileVerb?) throws(CommandFailure) {
    var files = try status().files
    if try lookUp(names.filter { name in !files.contains { $0.name == name } }) {
      files = try status().files
    }
    var messages: [String] = []
    for name in names {
      let pattern = NamePattern(name)
      let matching = files.filter { pattern.matches($0.name) }
      if matching.isEmpty {
        let advice =
          pattern.hasWildcards
          ? ", of listings those that were looked up: run 'find \(shown)' first" : ""
        messages.append(
          "no file '\(escapingControls(name))' in \(shown); 'httpfs status \(shown)' shows its "
            + "files\(advice)")
      }
      if verb == .evict, let pinned = matching.first(where: \.pinned) {
        messages.append(
          "'\(escapingControls(pinned.name))' is pinned: nothing is evicted; unpin it first")
      }
    }
    if !messages.isEmpty { throw CommandFailure(messages: messages) }
  }

  /// The lines to write, each with as many names as one write may contain.
  private func batches(_ command: String, _ names: [String]) throws(CommandFailure) -> [String] {
    guard !names.isEmpty else { return ["\(command)\n"] }
    var batches: [String] = []
    var line = command
    for name in names {
      let word = " " + ControlParser.word(name)
      if line.utf8.count + word.utf8.count + 1 > ControlWriter.byteLimit, line != command {
        batches.append(line + "\n")
        line = command
      }
      guard line.utf8.count + word.utf8.count + 1 <= ControlWriter.byteLimit else {
        throw CommandFailure("a name of \(name.utf8.count) bytes is too long; use a pattern for it")
      }
      line += word
    }
    return batches + [line + "\n"]
  }

  /// Writes commands to `.control` with one write(2).
  func write(_ text: String) throws(CommandFailure) {
    let path = "\(mount.mountpoint)/.control"
    let descriptor = open(path, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let error = ErrorNumber.last
      switch error.rawValue {
      case EACCES, EPERM:
        throw CommandFailure(
          "only the user who runs the mount may control it; '\(path)' belongs to them")
      case ENOENT:
        throw CommandFailure(
          "there is no '\(path)': an earlier version of httpfs serves the mount; mount it again")
      default: throw failure("cannot open '\(path)'", error)
      }
    }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    while Glibc.write(descriptor, bytes, bytes.count) < 0 {
      let error = ErrorNumber.last
      switch error.rawValue {
      case EINTR: continue
      case EBUSY:
        throw CommandFailure(
          "nothing was evicted: a file is open or being prefetched; close it, or end that with "
            + "'httpfs cancel'")
      case EPERM:
        throw CommandFailure("nothing was evicted: a file is pinned; see 'httpfs unpin'")
      case ENOENT: throw CommandFailure("a file has vanished from \(shown) meanwhile")
      case EINVAL:
        throw CommandFailure(
          "the mount at \(shown) does not take '\(escapingControls(String(text.dropLast())))'; "
            + "its log says why")
      default: throw failure("cannot write to '\(path)'", error)
      }
    }
  }

  private func failure(_ action: String, _ error: ErrorNumber) -> CommandFailure {
    let advice =
      error.rawValue == ENOTCONN
      ? "; the httpfs process has died: run 'httpfs unmount \(shown)'" : ""
    return CommandFailure("\(action): \(error)\(advice)")
  }
}
