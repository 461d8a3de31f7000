internal import CPassthrough
internal import Glibc
internal import HTTPTransferCore
internal import MountStatus
internal import RemoteFiles
internal import Synchronization

/// The inodes that the kernel knows: directories by path, versions of files by number.
///
/// What it holds is bounded by what the kernel has looked up and not forgotten, and the kernel gives
/// that up where memory is short. What it refers to (a version and its file, a directory below a
/// listing) ends with it where the directory above keeps it no longer (`ListingRegistry`).
///
/// Lock order: `state` is a leaf.
final class InodeTable: Sendable {
  /// How the open handles of an inode read.
  ///
  /// The kernel refuses an inode both ways at once, so the
  /// first open decides until the last one is closed.
  enum ReadMode {
    /// Through the daemon, pages kept.
    case cached
    /// The kernel reads the backing file of this id itself.
    case passthrough(backingID: CInt)
  }

  private struct VersionNode {
    let version: RemoteVersion
    var lookupCount: UInt64 = 0
    var openCount = 0
    var mode: ReadMode?
    /// Whether the size that the kernel knows is what had come by then.
    var hasGrowingSize = false
    /// Whether pages may be left of the time when its length was unknown.
    var hasGrowingPages = false
  }

  /// How a handle that is being opened reads.
  struct OpenMode {
    let mode: ReadMode
    /// Whether the kernel may keep the pages that it has of the inode.
    let keepsPages: Bool
  }

  /// A file that is known from its listing only.
  private struct ListedNode {
    let file: RemoteFile
    let appearance: ListedAppearance
    var lookupCount: UInt64 = 0
  }

  private struct DirectoryNode {
    let path: String
    /// How often the kernel has looked it up; nil for one that the list makes, which stays.
    var lookupCount: UInt64?
    /// What it shows, below a listing: who holds the directory above need not hold it, too.
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

    /// Makes the number that stood for what a listing says that of the version.
    mutating func settle(_ version: RemoteVersion, _ number: UInt64) {
      guard let node = listed.removeValue(forKey: number) else { return }
      versions[number] = VersionNode(version: version, lookupCount: node.lookupCount)
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

  /// The number of a directory that the list makes, the same as long as the mount lives.
  func number(ofDirectory path: String) -> InodeNumber {
    state.withLock { state in
      guard let number = state.directoryNumbers[PathKey(path)] else {
        return state.makeNumber(ofDirectory: path, lookupCount: nil)
      }
      state.directories[number]?.lookupCount = nil
      return InodeNumber(rawValue: number)
    }
  }

  /// Counts a look-up of a directory below a listing by the kernel; ``forget(_:count:)`` takes it
  /// back: there may be any number of them in the life of a mount.
  func remember(_ directory: ListedDirectory) -> InodeNumber {
    let path = directory.source.path
    // The one before is released after the lock: it may be the last reference.
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

  /// Counts a look-up of `version` by the kernel; ``forget(_:count:)`` takes it back.
  func remember(_ version: RemoteVersion) -> InodeNumber {
    let number = InodeNumber(version.id)
    state.withLock {
      $0.settle(version, number.rawValue)
      $0.versions[number.rawValue, default: VersionNode(version: version)].lookupCount += 1
    }
    return number
  }

  /// Counts a look-up of a file that looks as its listing says; ``forget(_:count:)`` takes it back.
  func remember(_ file: RemoteFile, as appearance: ListedAppearance) -> InodeNumber {
    let number = InodeNumber(appearance.id)
    state.withLock { state in
      // It may have been opened this very moment.
      if state.versions[number.rawValue] != nil {
        state.versions[number.rawValue]?.lookupCount += 1
      } else {
        let node = ListedNode(file: file, appearance: appearance)
        state.listed[number.rawValue, default: node].lookupCount += 1
      }
    }
    return number
  }

  /// The server has described what a listing did: its number is that of `version` from now on.
  func settle(_ version: RemoteVersion) {
    state.withLock { $0.settle(version, InodeNumber(version.id).rawValue) }
  }

  /// The file that stands under a number as its listing says.
  func listed(_ number: UInt64) -> (file: RemoteFile, appearance: ListedAppearance)? {
    state.withLock { $0.listed[number].map { ($0.file, $0.appearance) } }
  }

  func forget(_ number: UInt64, count: UInt64) {
    // Released after the lock: it may be the last reference.
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

  func version(_ number: UInt64) -> RemoteVersion? {
    state.withLock { $0.versions[number]?.version }
  }

  /// The kernel is being told a size of an inode, which is that of the file or, where its length is unknown,
  /// what has come so far.
  func noteSize(_ number: InodeNumber, isFinal: Bool) {
    state.withLock { $0.versions[number.rawValue]?.hasGrowingSize = !isFinal }
  }

  // MARK: Open handles

  /// Whether it has been decided how the handles of an inode read.
  func isOpen(_ number: UInt64) -> Bool {
    state.withLock { $0.versions[number]?.mode != nil }
  }

  /// Counts an open of a version whose length is known or not; `decide` is asked for the mode when it is the
  /// first.
  ///
  /// `decide` registers a backing file, which is a system call without waiting, and reads nothing; two opens
  /// that race must agree on one mode, hence under the lock.
  ///
  /// - Returns: nil where the kernel is to look the name up first: it does not know the inode, or not that its
  ///   length has become known, and would end sendfile(2) at the size that it knows.
  func beginOpen(
    _ number: UInt64, isLengthKnown: Bool, decide: () -> ReadMode
  ) -> OpenMode? {
    state.withLock { state in
      guard var node = state.versions[number] else { return nil }
      defer { state.versions[number] = node }
      if isLengthKnown, node.hasGrowingSize {
        // Once: who opens it by another way than its name gets it all the same.
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
      // Without leave to keep them the kernel drops its pages as it opens.
      let keepsPages = !node.hasGrowingPages
      if case .cached = mode { node.hasGrowingPages = false }
      return OpenMode(mode: mode, keepsPages: keepsPages)
    }
  }

  /// The kernel has not taken an open that was to drop the pages of an inode.
  func distrustPages(_ number: UInt64) {
    state.withLock { $0.versions[number]?.hasGrowingPages = true }
  }

  /// Takes an open back.
  ///
  /// - Returns: the backing id to close, when it was the last open of a passthrough inode.
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

  /// How much of the table the kernel makes use of now.
  var status: KernelStatus {
    state.withLock { state in
      KernelStatus(
        inodes: state.versions.count + state.listed.count,
        openHandles: state.versions.values.reduce(0) { $0 + $1.openCount })
    }
  }

  /// The versions whose handles the kernel reads by itself now.
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
