import Glibc
import LinuxSystem

/// An error of the cache: what failed, where, and what to do.
package struct CacheError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of an error, for decisions.
  package enum Code: Hashable, Sendable {
    /// Another mount holds the cache directory; its process identifier if it could be read.
    case inUse(pid: Int32?, mountpoint: String?)
    /// There is no directory, or it holds no cache of this format version.
    case notACache
    /// The directory cannot be trusted with private data.
    case unsafeDirectory(UnsafeDirectoryReason)
    /// The disk or the user's quota is full (`ENOSPC`, `EDQUOT`), or the file is too long for a
    /// limit (`EFBIG`). Evict entries, or serve without caching.
    case noSpace
    /// The file system is mounted read-only (`EROFS`).
    case readOnly
    /// The process may not do this (`EACCES`, `EPERM`).
    case permissionDenied
    /// The process or the system has no descriptor left (`EMFILE`, `ENFILE`).
    case descriptorLimit
    /// A later version of httpfs has written the entry, in a format that this version does not know
    /// (`EPROTONOSUPPORT`). The entry stays untouched.
    case laterFormat
    /// An argument out of bounds: a negative offset or length, or a version too long to record.
    case invalidArgument
    /// An earlier `fdatasync` of this entry failed, so uncommitted bytes may be lost. Open the
    /// entry again with ``UncommittedExtents/discard``.
    case syncFailed
    /// Any other failure of the file system.
    case io
  }

  /// Why a directory cannot be used.
  package enum UnsafeDirectoryReason: Hashable, Sendable {
    case symbolicLink
    case notADirectory
    case foreignOwner(uid: UInt32)
    /// Others can read the directory and it holds files that are not a cache's. Its mode is not
    /// tightened, because it may be a home directory or `/tmp`.
    case holdsOtherFiles
  }

  package let code: Code

  /// The file or directory of the failed operation.
  package let path: String

  /// The `errno` of the failed call; 0 if no call failed.
  package let errno: CInt

  init(code: Code, path: String, errno: CInt = 0) {
    self.code = code
    self.path = path
    self.errno = errno
  }

  init(_ number: ErrorNumber, path: String) {
    let code: Code =
      switch number.rawValue {
      case ENOSPC, EDQUOT, EFBIG: .noSpace
      case EROFS: .readOnly
      case EACCES, EPERM: .permissionDenied
      case EMFILE, ENFILE: .descriptorLimit
      case EPROTONOSUPPORT: .laterFormat
      default: .io
      }
    self.init(code: code, path: path, errno: number.rawValue)
  }

  /// Whether the error concerns one entry and not the whole cache.
  ///
  /// Examples are a file too long for the file system, a name or description that is too long, an
  /// unreadable record, or another kind of file under one of its names.
  package var isOfEntry: Bool {
    switch code {
    case .laterFormat, .invalidArgument: true
    default: Self.entryNumbers.contains(errno)
    }
  }

  private static let entryNumbers = [
    EFBIG, ENAMETOOLONG, EOVERFLOW, ELOOP, ENOTDIR, EISDIR, EEXIST, ENOTEMPTY, ENXIO,
  ]

  /// One line: the path, what is wrong, what to do.
  package var description: String {
    "\(path): \(explanation)"
  }

  private var explanation: String {
    switch code {
    case .inUse(let pid, let mountpoint):
      "the cache is in use by " + (pid.map { "process \($0)" } ?? "another process")
        + (mountpoint.map { ", mounted at \($0)" } ?? "")
        + "; unmount it, or name another directory with --cache-dir"
    case .notACache:
      "no cache is here; name the directory that a mount uses with --cache-dir"
    case .unsafeDirectory(.symbolicLink):
      "the cache directory is a symbolic link; name the directory that it points to"
    case .unsafeDirectory(.notADirectory):
      "not a directory; choose another cache directory"
    case .unsafeDirectory(.foreignOwner(let uid)):
      "owned by user \(uid), not by user \(ProcessCalls.effectiveUserID);"
        + " choose a cache directory of your own"
    case .unsafeDirectory(.holdsOtherFiles):
      "open to other users and in use for other files; choose an empty cache directory"
    case .noSpace:
      "no space for the cache (\(systemText)); free some or choose a smaller cache size"
    case .readOnly:
      "the file system is read-only; choose another cache directory"
    case .permissionDenied:
      "no permission (\(systemText)); choose a cache directory that you can write"
    case .descriptorLimit:
      "too many open files (\(systemText)); raise the limit with ulimit -n"
    case .laterFormat:
      "written by a later version of httpfs; use that one, or another cache directory"
    case .invalidArgument:
      "a length or an offset is out of bounds; report this as a bug"
    case .syncFailed:
      "the disk failed to store the cache (\(systemText)); check the disk"
    case .io:
      "\(systemText); check the disk or choose another cache directory"
    }
  }

  private var systemText: String { ErrorNumber(rawValue: self.errno).description }
}
