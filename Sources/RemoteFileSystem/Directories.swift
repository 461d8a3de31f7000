internal import DirectoryListing
internal import Glibc
internal import RemoteFiles

/// Opens directories to read their names: immediately from the list, or from a listing when it
/// arrives.
final class Directories: Sendable {
  private let tree: MountedTree
  private let inodes: InodeTable
  private let prober: DirectoryProber

  init(tree: MountedTree, inodes: InodeTable, prober: DirectoryProber) {
    self.tree = tree
    self.inodes = inodes
    self.prober = prober
  }

  func open(_ number: UInt64, _ reply: consuming sending some FileSystemReply & ~Copyable) {
    let tree = tree.current
    guard let path = inodes.directoryPath(number), let node = tree.node(path) else {
      return reply.error(ENOENT)
    }
    let directory: FileTree.Directory
    switch node {
    case .fixed(let fixed): directory = fixed
    case .listed(let listed): return open(number, listed, reply)
    }
    var items = Self.dots(of: number)
    items.reserveCapacity(directory.children.count + 2)
    for child in directory.children {
      let name = tree.name(of: child)
      switch child {
      case .directory(let path):
        let inode = inodes.number(ofDirectory: path)
        items.append(.init(name: name, inode: inode.rawValue, isDirectory: true))
      case .file:
        items.append(.init(name: name, inode: Self.unknownInode, isDirectory: false))
      }
    }
    prober.recordListing(of: path)
    _ = reply.open(OpenHandle(.directory(items)), .cached(keepsPages: false))
  }

  /// Opens `directory` and waits for its names.
  private func open(
    _ number: UInt64, _ directory: ListedDirectory,
    _ reply: consuming sending some FileSystemReply & ~Copyable
  ) {
    let parked = reply.parked()
    directory.names { [self] result in
      guard let reply = parked.take() else { return }
      switch result {
      case .success(let names):
        // Entries get no inode number before a lookup, because the table forgets numbers when the
        // kernel does.
        let items = names.entries.map { entry in
          OpenHandle.Item(
            name: entry.name, inode: Self.unknownInode, isDirectory: entry.isDirectory)
        }
        prober.recordListing(of: directory.source.path)
        _ = reply.open(
          OpenHandle(.directory(Self.dots(of: number) + items)), .cached(keepsPages: false))
      case .failure(let error): reply.error(error.openErrno)
      }
    }
  }

  func read(
    _ handle: OpenHandle, offset: Int64, byteCount: Int,
    _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    guard case .directory(let items) = handle.content, offset >= 0 else {
      return reply.error(EBADF)
    }
    reply.items(items[min(Int(clamping: offset), items.count)...], byteCount: byteCount)
  }

  /// The `.` and `..` of every directory.
  private static func dots(of number: UInt64) -> [OpenHandle.Item] {
    [
      OpenHandle.Item(name: ".", inode: number, isDirectory: true),
      OpenHandle.Item(name: "..", inode: unknownInode, isDirectory: true),
    ]
  }

  /// The inode number that `readdir` gives for a file that was not looked up (FUSE_UNKNOWN_INO).
  private static let unknownInode: UInt64 = 0xFFFF_FFFF
}
