internal import Glibc

/// Why what was written to `.control` is refused; then none of it is done.
public enum ControlRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  /// It is no command; why, in a few words.
  case invalid(String)
  /// More bytes than one write may bring.
  case tooLong
  /// What is written continues a line that was taken for a command, or refused, already.
  case continuation
  /// A name or pattern that stands for no file.
  case noSuchFile(String)
  /// A file that cannot be evicted, because it is open or being prefetched.
  case inUse(String)
  /// A file that cannot be evicted, because it is pinned.
  case pinned(String)

  /// What write(2) fails with.
  public var errno: CInt {
    switch self {
    case .invalid, .continuation: EINVAL
    case .tooLong: EMSGSIZE
    case .noSuchFile: ENOENT
    case .inUse: EBUSY
    case .pinned: EPERM
    }
  }

  /// In one line, for the log; may hold any text that was written.
  public var description: String {
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
