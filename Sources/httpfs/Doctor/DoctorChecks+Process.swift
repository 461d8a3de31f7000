import CLinux
import ConfigurationFile
import Dispatch
import FUSEMount
import Glibc
import LinuxSystem

/// Checks the resources of this process, and the leftovers of others.
extension DoctorChecks {
  /// A mount raises its limit to the hard limit.
  static func descriptorLimit() -> DoctorFinding {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return .warning("limit of open files: \(ErrorNumber.last)", "see ulimit(1)")
    }
    // Each open file needs a descriptor for its data, and each connection needs one.
    let wanted: rlim_t = 1024
    if limit.rlim_max == rlim_t.max { return .ok("no limit on open files") }
    return limit.rlim_max < wanted
      ? .warning(
        "at most \(limit.rlim_max) open files",
        "raise the hard limit: 'ulimit -Hn \(wanted)' as root, or LimitNOFILE= of the service")
      : .ok("up to \(limit.rlim_max) open files")
  }

  /// Mounts of httpfs that are dead or do not answer.
  static func mounts() -> [DoctorFinding] {
    let table: MountTable
    do throws(ErrorNumber) {
      table = try MountTable.current()
    } catch {
      return [.failed("/proc/self/mountinfo cannot be read: \(error)", "mount /proc")]
    }
    let mounts = table.entries.filter { $0.fileSystemType == "fuse.httpfs" }
    let findings = mounts.compactMap { mount -> DoctorFinding? in
      let path = mount.mountpoint
      switch MountHealth(of: mount) {
      case .ok: return nil
      case .dead:
        return .warning(
          "the daemon of the mount at \(path) is dead",
          "run 'httpfs unmount --lazy \(path)', or mount there again")
      case .hangs:
        return .warning(
          "the mount at \(path) does not answer",
          "its watchdog ends it soon; or run 'httpfs unmount --lazy \(path)'")
      }
    }
    if !findings.isEmpty { return findings }
    return mounts.isEmpty
      ? [] : [.ok("\(mounts.count) mount\(mounts.count == 1 ? "" : "s") of httpfs, all alive")]
  }

  static func configuration(_ options: ConfigurationOptions) -> DoctorFinding? {
    if options.noConfig { return nil }
    guard let path = options.config ?? ConfigurationSource.usualPath() else {
      return .ok(
        "no configuration file; it would be "
          + ConfigurationSource.candidates().joined(separator: " or "))
    }
    do throws(CommandFailure) {
      let source = try ConfigurationSource(path: path, isNamed: options.config != nil)
      _ = try source.summary()
      let names = source.file.mounts.map { "@\($0.name)" }
      return .ok(
        "configuration in \(path): \(names.isEmpty ? "no mounts" : names.joined(separator: ", "))")
    } catch {
      return .failed("\(error)", "correct the file, or use --no-config")
    }
  }
}

extension ConfigurationSource {
  /// The command line of each section, without secrets; checks all sections.
  func summary() throws(CommandFailure) -> [String] {
    var lines: [String] = []
    for name in ConfigurationFile.commands {
      guard let command = ConfigurableCommand(name) else { continue }
      lines += try ConfiguredCommand(command, from: self).summary()
    }
    return lines
  }
}
