import CLinux
import Glibc
import LinuxSystem

/// Reads a file that an option names.
///
/// - Parameters:
///   - path: the file.
///   - purpose: its purpose in messages: `header file`.
/// - Returns: its bytes.
/// - Throws: ``CommandFailure`` with both.
func accessFile(_ path: String, _ purpose: String) throws(CommandFailure) -> [UInt8] {
  do {
    return try StreamCalls.contents(ofFile: path, maximumByteCount: 16 << 20)
  } catch {
    throw CommandFailure("cannot read the \(purpose) '\(path)'", error)
  }
}

/// Refuses a file with passwords that other users can read or change.
func requirePrivacy(ofFile path: String, _ purpose: String) throws(CommandFailure) {
  var status = stat()
  guard stat(path, &status) == 0 else {
    throw CommandFailure("cannot read the \(purpose) '\(path)'", .last)
  }
  guard status.st_mode & 0o077 == 0 else {
    throw CommandFailure(
      "the \(purpose) '\(path)' may be read or changed by other users: chmod 600 it, and change "
        + "the passwords if others are on this machine")
  }
  guard status.st_uid == geteuid() || status.st_uid == 0 else {
    throw CommandFailure(
      "the \(purpose) '\(path)' belongs to another user; name a file of your own")
  }
}

/// The path of an existing file, without links.
///
/// libcurl opens the file when a connection needs it, long after a daemon has changed its working
/// directory.
func lastingPath(_ path: String) -> String {
  guard let resolved = realpath(path, nil) else { return path }
  defer { free(resolved) }
  return String(cString: resolved)
}

/// The lines of a file, without their ends, numbered from 1.
func numberedLines(_ bytes: [UInt8]) -> [(number: Int, text: String)] {
  bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated().map {
    let line = $1.last == 0x0D ? $1.dropLast() : $1
    return ($0 + 1, String(decoding: line, as: UTF8.self))
  }
}
