internal import CFuse
internal import Glibc

/// Mounts for an ordinary user through fusermount3, which is setuid root: it opens the device, mounts
/// and hands the descriptor over.
///
/// libfuse does the same, but opens `/dev/fuse` itself first and gives up where only root may.
enum FusermountHelper {
  static let program = "fusermount3"

  /// Mounts at `mountpoint`.
  ///
  /// - Returns: the descriptor of the FUSE device, for libfuse to take over as `/dev/fd/N`.
  static func mount(_ mountpoint: String, options: String) throws(MountError) -> CInt {
    var ends: [CInt] = [-1, -1]
    guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0 else {
      throw MountError("cannot make a socket pair: \(SystemError.last)")
    }
    _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
    defer { for end in ends { close(end) } }
    let result: ChildProcessResult
    do throws(SystemError) {
      result = try runChildProcess(
        program, ["-o", options, "--", mountpoint], environment: ["_FUSE_COMMFD=\(ends[1])"])
    } catch {
      throw MountError("cannot run \(program): \(error); install the package fuse3")
    }
    guard result.exitCode == 0 else {
      let reason = result.errorOutput.split(separator: "\n").first ?? "\(program) failed"
      throw MountError("cannot mount at '\(mountpoint)': \(reason)")
    }
    let device = httpfs_receive_descriptor(ends[0])
    guard device >= 0 else {
      throw MountError("\(program) handed over no descriptor for '\(mountpoint)'")
    }
    return device
  }

  /// Unmounts, also while files are open; nothing happens where nothing is mounted.
  static func unmount(_ mountpoint: String) {
    _ = try? runChildProcess(program, ["-u", "-q", "-z", "--", mountpoint])
  }
}
