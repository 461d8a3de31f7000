import Foundation
import Glibc

/// A running `httpfs mount`, in the foreground, as a child process.
final class Mount {
  let mountpoint: String
  let cacheDirectory: String
  let process: ChildProcess
  /// The words before every command that must see the mount.
  ///
  /// They are empty, or enter the mount's own namespace as its user.
  let enter: [String]

  /// Starts httpfs and waits until it reports that the mount can be read.
  ///
  /// - Parameters:
  ///   - source: the list file or the URL.
  ///   - mountpoint: an empty directory, as its real path.
  ///   - cacheDirectory: the directory of the cache.
  ///   - options: further options of `httpfs mount`.
  ///   - launcher: the words before the command line, such as a change of user.
  ///   - limit: the time limit until the mount can be read.
  ///   - enter: maps the process identifier to the words before the readers' command lines.
  /// - Throws: `HarnessError` if the mount is refused, or not ready in time.
  init(
    source: String, mountpoint: String, cacheDirectory: String, options: [String] = [],
    launcher: [String] = [], within limit: Duration = .seconds(60),
    enter: (pid_t) -> [String] = { _ in [] }
  ) throws {
    self.mountpoint = mountpoint
    self.cacheDirectory = cacheDirectory
    process = try ChildProcess(
      // Tests mount URLs of servers that fail, too.
      launcher + [try Products.httpfs, "mount", "--no-check"] + options
        + ["--cache-dir", cacheDirectory, source, mountpoint])
    self.enter = enter(process.processID)
    let process = process
    let answered = Deadline(after: limit).wait {
      process.standardOutput.contains("mounted \(mountpoint) (") || !process.isRunning
    }
    guard answered, process.isRunning else {
      let ending = process.ending.map { "\($0)" } ?? "still running"
      tearDown()
      throw HarnessError(
        "not mounted (\(ending)): \(process.commandLine)\n\(process.standardError)")
    }
  }

  deinit { tearDown() }

  /// The path of a file on the mount.
  func path(_ name: String) -> String { "\(mountpoint)/\(name)" }

  /// The number of files that httpfs reported when it was ready.
  var announcedFileCount: Int? {
    let line = process.standardOutput.split(separator: "\n").first { $0.hasPrefix("mounted ") }
    return line?.split(separator: "(").last?.split(separator: " ").first.flatMap { Int($0) }
  }

  /// Reads `.status.json`, within five seconds.
  func status() throws -> MountStatusFile {
    let text = try output(of: enter + ["cat", path(".status.json")], within: .seconds(5))
    return try JSONDecoder().decode(MountStatusFile.self, from: Data(text.utf8))
  }

  /// The status of one file.
  func status(of name: String) throws -> MountStatusFile.File {
    guard let file = try status().files.first(where: { $0.name == name }) else {
      throw HarnessError("no file '\(name)' in .status.json")
    }
    return file
  }

  /// Waits until the file's status satisfies `condition`.
  func waitForStatus(
    of name: String, within limit: Duration = .seconds(20),
    _ condition: (MountStatusFile.File) -> Bool
  ) throws -> Bool {
    try Deadline(after: limit).wait(every: .milliseconds(20)) { condition(try status(of: name)) }
  }

  /// The SHA-256 of a file on the mount, read from first to last byte.
  func sha256(_ name: String, within limit: Duration = .seconds(90)) throws -> String {
    let line = try output(of: enter + DigestCommand.words(path(name)), within: limit)
    return String(line.prefix(64))
  }

  /// Whether the kernel still has the mount.
  var isMounted: Bool {
    MountTable.httpfs(at: mountpoint) != nil
  }

  /// Unmounts with `fusermount3 -u` and waits for httpfs to end.
  ///
  /// While another process reads all mounts of the machine, the kernel may report this one as busy.
  ///
  /// - Returns: how httpfs ended.
  @discardableResult
  func unmount() throws -> ChildProcess.Ending {
    let isUnmounted = try Deadline(after: .seconds(5)).wait(every: .milliseconds(100)) {
      let result = try run(enter + ["fusermount3", "-u", mountpoint], within: .seconds(10))
      guard result.succeeded || result.error.contains("Device or resource busy") else {
        throw HarnessError("fusermount3 -u \(mountpoint): \(result.ending): \(result.error)")
      }
      return result.succeeded
    }
    guard isUnmounted else { throw HarnessError("\(mountpoint) is busy") }
    guard let ending = process.wait(within: .seconds(15)) else {
      // A mount namespace that was created meanwhile may have a copy of the mount, which keeps it.
      let holders = try run(
        [
          "sh", "-c", "grep --files-with-matches --fixed-strings \"$1\" /proc/[0-9]*/mountinfo",
          "sh",
          mountpoint,
        ], within: .seconds(10)
      ).output
      throw HarnessError("httpfs still runs 15 s after its unmount; who has the mount: \(holders)")
    }
    return ending
  }

  /// Kills httpfs, as a crash would, and removes the dead mount.
  func crash() throws {
    process.signal(SIGKILL)
    guard process.wait(within: .seconds(10)) != nil else {
      throw HarnessError("httpfs survives SIGKILL")
    }
    if isMounted {
      _ = try run(["fusermount3", "-u", "-z", mountpoint], within: .seconds(10))
    }
    guard !isMounted else { throw HarnessError("\(mountpoint) is still mounted after the crash") }
  }

  /// The peak of the daemon's resident memory in bytes (`VmHWM` of proc(5)).
  var peakResidentByteCount: Int64 {
    get throws {
      let text = try String(
        contentsOfFile: "/proc/\(process.processID)/status", encoding: .utf8)
      for line in text.split(separator: "\n") where line.hasPrefix("VmHWM:") {
        let words = line.split(separator: " ")
        if words.count >= 2, let kibibytes = Int64(words[1].drop { !$0.isNumber }) {
          return kibibytes * 1024
        }
      }
      throw HarnessError("no VmHWM of httpfs")
    }
  }

  /// Cleans up in every state of the mount.
  ///
  /// It asks the daemon to end, then detaches the mount, then kills the daemon. The kill ends the
  /// connection to the kernel and frees every reader.
  func tearDown() {
    process.signal(SIGTERM)
    if process.wait(within: .seconds(3)) == nil {
      _ = try? run(enter + ["fusermount3", "-u", "-z", mountpoint], within: .seconds(5))
      abortConnection()
      if process.wait(within: .seconds(1)) == nil { process.kill() }
    }
    if isMounted {
      _ = try? run(["fusermount3", "-u", "-z", mountpoint], within: .seconds(5))
    }
  }

  /// Ends the mount's connection in the kernel, if `fusectl` is mounted.
  private func abortConnection() {
    guard let entry = MountTable.httpfs(at: mountpoint) else { return }
    let path = "/sys/fs/fuse/connections/\(entry.deviceMinor)/abort"
    let descriptor = open(path, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = write(descriptor, "1", 1)
    close(descriptor)
  }
}
