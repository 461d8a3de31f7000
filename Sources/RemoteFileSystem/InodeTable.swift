internal import Glibc
internal import HTTPTransferCore
internal import MountStatus
internal import RemoteFiles
internal import Synchronization

/// The inodes that the kernel knows: directories by path, versions of files by number.
///
/// The table is bounded by what the kernel has looked up and not forgotten; the kernel forgets
/// inodes when memory is short. Removing an inode also releases its version and file, or its
/// directory below a listing, if the directory above no longer keeps them (`ListingRegistry`).
///
/// Lock order: `state` is a leaf.
final class InodeTable: Sendable {
  /// How the open handles of an inode read.
  ///
  /// The kernel does not mix both modes for one inode, so the first open decides until the last
  /// handle is closed.
  enum ReadMode {
    /// Through the daemon; the kernel caches pages.
    case cached
    /// The kernel reads the backing file of this id directly.
    case passthrough(backingID: CInt)
  }

  private struct VersionNode {
    let version: RemoteVersion
    let file: RemoteFile
    var lookupCount: UInt64 = 0
    var openCount = 0
    var mode: ReadMode?
    /// Whether the size that the kernel knows was only what had arrived by then.
    var hasGrowingSize = false
    /// Whether the kernel may have pages from the time when the length was unknown.
    var hasGrowingPages = false
  }

  /// How a handle that is being opened will read.
  struct OpenMode {
    let mode: ReadMode
    /// Whether the kernel may keep its cached pages of the inode.
    let keepsPages: Bool
  }

  /// A file that the kernel knows by number.
  enum KnownFile {
    case described(RemoteVersion, of: RemoteFile)
    /// Known only from its listing.
    case listed(RemoteFile, as: ListedAttributes)
  }

  /// A file that is known only from its listing.
  private struct ListedNode {
    let file: RemoteFile
    let appearance: ListedAttributes
    var lookupCount: UInt64 = 0
  }

  private struct DirectoryNode {
    let path: String
    /// The kernel's lookup count; nil for a directory of the list, which stays.
    var lookupCount: UInt64?
    /// Its content, below a listing, so that the directory above need not keep it.
    var listed: ListedDirectory?
  }

  private struct State {
    var versions: [UInt64: VersionNode] = [:]
    var listed: [UInt64: ListedNode] = [:]
    var directoryNumbers: [PathKey: UInt64] = [PathKey(""): InodeNumber.root.rawValue]
    var directories: [UInt64: DirectoryNode] = [
      InodeNumber.root.rawValue: DirectoryNode(path: "", lookupCount: nil)
    ]
    var nextDirectory = InodeNumber.firstDirectory

    mutating func makeNumber(ofDirectory path: String, lookupCount: UInt64?) -> InodeNumber {
      let number = nextDirectory
      nextDirectory += 1
      directoryNumbers[PathKey(path)] = number
      directories[number] = DirectoryNode(path: path, lookupCount: lookupCount)
      return InodeNumber(rawValue: number)
    }

    /// Moves the number of a listed file to its version.
    mutating func settle(_ version: RemoteVersion, _ number: UInt64) {
      guard let node = listed.removeValue(forKey: number) else { return }
      versions[number] = VersionNode(
        version: version, file: node.file, lookupCount: node.lookupCount)
    }

    mutating func forgetListed(_ number: UInt64, count: UInt64) -> ListedNode? {
      guard let node = listed[number] else { return nil }
      guard node.lookupCount <= count else {
        listed[number]?.lookupCount -= count
        return nil
      }
      return listed.removeValue(forKey: number)
    }

    mutating func forgetDirectory(_ number: UInt64, count: UInt64) -> ListedDirectory? {
      guard let node = directories[number], let known = node.lookupCount else { return nil }
      guard known <= count else {
        directories[number]?.lookupCount = known - count
        return nil
      }
      directories[number] = nil
      directoryNumbers[PathKey(node.path)] = nil
      return node.listed
    }
  }

  private let state = Mutex(State())

  // MARK: Directories

  /// The number of a directory of the list; it stays the same for the life of the mount.
  func number(ofDirectory path: String) -> InodeNumber {
    state.withLock { state in
      guard let number = state.directoryNumbers[PathKey(path)] else {
        return state.makeNumber(ofDirectory: path, lookupCount: nil)
      }
      state.directories[number]?.lookupCount = nil
      return InodeNumber(rawValue: number)
    }
  }

  /// Counts a lookup by the kernel of a directory below a listing; ``forget(_:count:)`` undoes it.
  ///
  /// A mount may see any number of such directories.
  func remember(_ directory: ListedDirectory) -> InodeNumber {
    let path = directory.source.path
    // Release the previous one after the lock: this may be the last reference.
    let (number, before) = state.withLock { state -> (InodeNumber, ListedDirectory?) in
      let number: InodeNumber
      if let known = state.directoryNumbers[PathKey(path)] {
        number = InodeNumber(rawValue: known)
      } else {
        number = state.makeNumber(ofDirectory: path, lookupCount: 0)
      }
      let before = state.directories[number.rawValue]?.listed
      state.directories[number.rawValue]?.listed = directory
      if let count = state.directories[number.rawValue]?.lookupCount {
        state.directories[number.rawValue]?.lookupCount = count + 1
      }
      return (number, before)
    }
    _ = before
    return number
  }

  func directoryPath(_ number: UInt64) -> String? {
    state.withLock { $0.directories[number]?.path }
  }

  // MARK: Versions

  /// Counts a lookup of `version` of `file` by the kernel; ``forget(_:count:)`` undoes it.
  func remember(_ version: RemoteVersion, of file: RemoteFile) {
    let number = InodeNumber(version.id)
    state.withLock {
      $0.settle(version, number.rawValue)
      let node = VersionNode(version: version, file: file)
      $0.versions[number.rawValue, default: node].lookupCount += 1
    }
  }

  /// Counts a lookup of a file with the attributes of its listing; ``forget(_:count:)`` undoes it.
  func remember(_ file: RemoteFile, as appearance: ListedAttributes) {
    let number = InodeNumber(appearance.id)
    state.withLock { state in
      // Another request may have opened it a moment ago.
      if state.versions[number.rawValue] != nil {
        state.versions[number.rawValue]?.lookupCount += 1
      } else {
        let node = ListedNode(file: file, appearance: appearance)
        state.listed[number.rawValue, default: node].lookupCount += 1
      }
    }
  }

  /// Moves the number of a listed file, which the server has described, to `version`.
  func settle(_ version: RemoteVersion) {
    state.withLock { $0.settle(version, InodeNumber(version.id).rawValue) }
  }

  func forget(_ number: UInt64, count: UInt64) {
    // Release it after the lock: this may be the last reference.
    let released = state.withLock { state -> (any Sendable)? in
      guard let node = state.versions[number] else {
        if state.listed[number] != nil { return state.forgetListed(number, count: count) }
        return state.forgetDirectory(number, count: count)
      }
      let left = node.lookupCount - min(count, node.lookupCount)
      state.versions[number]?.lookupCount = left
      guard left == 0, node.openCount == 0 else { return nil }
      state.versions[number] = nil
      return node.version
    }
    _ = released
  }

  /// The file with an inode number; nil for a directory, and for a file that the kernel forgot.
  ///
  /// One call returns all of it, because another request may settle a listed file between two.
  func file(_ number: UInt64) -> KnownFile? {
    state.withLock { state in
      if let node = state.versions[number] { return .described(node.version, of: node.file) }
      return state.listed[number].map { .listed($0.file, as: $0.appearance) }
    }
  }

  /// Records that the kernel learns a size of an inode: the size of the file or, if its length is
  /// unknown, what has arrived so far.
  func recordSize(_ number: InodeNumber, isFinal: Bool) {
    state.withLock { $0.versions[number.rawValue]?.hasGrowingSize = !isFinal }
  }

  // MARK: Open handles

  /// Whether the read mode of the inode's handles is already decided.
  func isOpen(_ number: UInt64) -> Bool {
    state.withLock { $0.versions[number]?.mode != nil }
  }

  /// Counts an open of a version with a known or unknown length.
  ///
  /// For the first open, `decide` selects the mode.
  ///
  /// `decide` registers a backing file, which is a system call that does not wait, and reads
  /// nothing. It runs under the lock, because two concurrent opens must agree on one mode.
  ///
  /// - Returns: nil if the kernel must look up the name again. It does not know the inode, or it
  ///   does not know that the length is known now and would end sendfile(2) at the old size.
  func beginOpen(
    _ number: UInt64, isLengthKnown: Bool, decide: () -> ReadMode
  ) -> OpenMode? {
    state.withLock { state in
      guard var node = state.versions[number] else { return nil }
      defer { state.versions[number] = node }
      if isLengthKnown, node.hasGrowingSize {
        // Only once: a program that opens the file other than by its name must succeed too.
        node.hasGrowingSize = false
        return nil
      }
      let mode = node.mode ?? decide()
      node.mode = mode
      node.openCount += 1
      guard isLengthKnown else {
        node.hasGrowingPages = true
        return OpenMode(mode: mode, keepsPages: false)
      }
      // Without permission to keep pages, the kernel drops them at the open.
      let keepsPages = !node.hasGrowingPages
      if case .cached = mode { node.hasGrowingPages = false }
      return OpenMode(mode: mode, keepsPages: keepsPages)
    }
  }

  /// Records that the kernel rejected an open that would have dropped the pages of an inode.
  func distrustPages(_ number: UInt64) {
    state.withLock { $0.versions[number]?.hasGrowingPages = true }
  }

  /// Ends an open.
  ///
  /// - Returns: the backing id to close after the last open of a passthrough inode.
  func endOpen(_ number: UInt64) -> CInt? {
    state.withLock { state in
      guard var node = state.versions[number] else { return nil }
      node.openCount -= 1
      defer { state.versions[number] = node.lookupCount == 0 && node.openCount == 0 ? nil : node }
      guard node.openCount == 0, let mode = node.mode else { return nil }
      node.mode = nil
      if case .passthrough(let id) = mode { return id }
      return nil
    }
  }

  /// The versions with open handles.
  var openVersions: [RemoteVersion] {
    state.withLock { state in
      state.versions.values.compactMap { $0.openCount > 0 ? $0.version : nil }
    }
  }

  /// How much of the table the kernel uses now.
  var status: KernelStatus {
    state.withLock { state in
      KernelStatus(
        inodes: state.versions.count + state.listed.count,
        openHandles: state.versions.values.reduce(0) { $0 + $1.openCount })
    }
  }

  /// The versions whose handles the kernel reads directly now.
  var passthroughVersions: Set<VersionID> {
    state.withLock { state in
      Set(
        state.versions.values.compactMap { node in
          if case .passthrough = node.mode { return node.version.id }
          return nil
        })
    }
  }
}
