internal import Glibc

/// Why a write to `.control` is refused.
///
/// None of its commands is executed.
package enum ControlRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  /// Not a command; why, in a few words.
  case invalid(String)
  /// More bytes than one write may bring.
  case tooLong
  /// The write continues a line that was already executed as a command, or refused.
  case continuation
  /// A name or pattern that matches no file.
  case noSuchFile(String)
  /// A file that cannot be evicted because it is open or being prefetched.
  case inUse(String)
  /// A file that cannot be evicted because it is pinned.
  case pinned(String)

  /// The error of write(2).
  package var errno: CInt {
    switch self {
    case .invalid, .continuation: EINVAL
    case .tooLong: EMSGSIZE
    case .noSuchFile: ENOENT
    case .inUse: EBUSY
    case .pinned: EPERM
    }
  }

  /// One line for the log; may contain any text that was written.
  package var description: String {
    switch self {
    case .invalid(let reason): reason
    case .tooLong: "more than \(ControlWriter.byteLimit) bytes in one write"
    case .continuation: "a write that continues an unfinished line"
    case .noSuchFile(let pattern): "no file '\(pattern)'"
    case .inUse(let name): "'\(name)' is open or being prefetched"
    case .pinned(let name): "'\(name)' is pinned"
    }
  }
}
