import Glibc
import LinuxSystem

/// The state of the daemon's process in the kernel.
struct DaemonState {
  let processID: pid_t

  /// Whether the process is stopped, by a signal or in a debugger.
  ///
  /// From `/proc/PID/stat` (proc(5)): the state is the letter after the name, which is in
  /// parentheses and may contain any character.
  var isStopped: Bool {
    guard let bytes = try? StreamCalls.contents(ofFile: "/proc/\(processID)/stat"),
      let parenthesis = bytes.lastIndex(of: UInt8(ascii: ")")), parenthesis + 2 < bytes.count
    else { return false }
    return [UInt8(ascii: "T"), UInt8(ascii: "t")].contains(bytes[parenthesis + 2])
  }
}
