import Foundation
import Glibc

/// A control group of the kernel (cgroups(7), version 1 or 2) for one process; it needs root.
final class ControlGroup {
  /// The purpose of the group.
  enum Controller: String {
    case freezer, memory
  }

  private let directory: String
  private let isUnified: Bool

  /// Creates a group.
  ///
  /// - Throws: `HarnessError` that names the missing part if this machine has no such groups.
  init(_ controller: Controller) throws {
    guard Host.isRoot else { throw HarnessError("a control group needs root") }
    let name = "httpfs-test-\(getpid())-\(UInt32.random(in: 0 ... .max))"
    let legacy = "/sys/fs/cgroup/\(controller.rawValue)"
    isUnified = access("\(legacy)/cgroup.procs", F_OK) != 0
    let parent = isUnified ? "/sys/fs/cgroup" : legacy
    directory = "\(parent)/\(name)"
    if isUnified, controller == .memory {
      try? Data("+memory".utf8).write(to: URL(fileURLWithPath: "\(parent)/cgroup.subtree_control"))
    }
    guard access("\(parent)/cgroup.procs", F_OK) == 0, mkdir(directory, 0o755) == 0 else {
      throw HarnessError(
        "no control groups at \(parent) (\(String(cString: strerror(errno)))): this test needs the "
          + "\(controller.rawValue) controller, of version 1 or 2")
    }
    let file =
      switch (controller, isUnified) {
      case (.freezer, false): "freezer.state"
      case (.freezer, true): "cgroup.freeze"
      case (.memory, false): "memory.limit_in_bytes"
      case (.memory, true): "memory.max"
      }
    guard access("\(directory)/\(file)", W_OK) == 0 else {
      rmdir(directory)
      throw HarnessError("control groups without \(file): the \(controller.rawValue) one is off")
    }
  }

  deinit { remove() }

  /// The words that start a command in the group; for the memory group.
  var launcher: [String] {
    ["sh", "-c", "echo $$ > '\(directory)/cgroup.procs' && exec \"$@\"", "sh"]
  }

  /// Moves a running process into the group.
  func adopt(_ process: pid_t) throws { try set("cgroup.procs", String(process)) }

  /// Stops the group's processes, whatever signals they get, or lets them run again.
  func setFrozen(_ isFrozen: Bool) throws {
    if isUnified {
      try set("cgroup.freeze", isFrozen ? "1" : "0")
    } else {
      try set("freezer.state", isFrozen ? "FROZEN" : "THAWED")
    }
  }

  /// Limits the memory of the group, including the page cache of its files.
  func setMemoryLimit(_ byteCount: Int64) throws {
    try set(isUnified ? "memory.max" : "memory.limit_in_bytes", String(byteCount))
  }

  /// How often the kernel has killed a process of the group because memory ran out.
  func killCount() throws -> Int {
    let file = isUnified ? "memory.events" : "memory.oom_control"
    let text = try String(contentsOfFile: "\(directory)/\(file)", encoding: .utf8)
    for line in text.split(separator: "\n") where line.hasPrefix("oom_kill ") {
      return Int(line.dropFirst(9)) ?? 0
    }
    throw HarnessError("no count of kills in \(file)")
  }

  /// Removes the group once its processes have ended.
  private func remove() {
    _ = Deadline(after: .seconds(5)).wait(every: .milliseconds(20)) {
      rmdir(directory) == 0 || errno == ENOENT
    }
  }

  private func set(_ file: String, _ value: String) throws {
    let descriptor = open("\(directory)/\(file)", O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw HarnessError.systemCall("open of \(file)") }
    defer { close(descriptor) }
    guard write(descriptor, value, value.utf8.count) == value.utf8.count else {
      throw HarnessError.systemCall("\(value) to \(file)")
    }
  }
}
