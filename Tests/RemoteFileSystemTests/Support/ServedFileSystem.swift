import Foundation
import Glibc
import HTTPTransfer
import HTTPTransferCore
import Logging
import RangeCache
import RemoteFileSystem
import RemoteFiles
import Testing

/// A file system without a mount: the files of a server, over its own cache directory.
final class ServedFileSystem: Sendable {
  static let root = InodeNumber.root.rawValue

  let server: RangeServer
  let fileSystem: FileSystem
  let environment: FileEnvironment
  private let cachePath: String

  /// Serves `contents` from a server under the same paths.
  init(_ contents: [String: RangeServer.Content], listings: [String] = []) throws {
    cachePath =
      FileManager.default.temporaryDirectory.path + "/httpfs-file-system-\(UUID().uuidString)"
    let server = try RangeServer(contents.reduce(into: [:]) { $0["/" + $1.key] = $1.value })
    self.server = server
    environment = FileEnvironment(
      client: ExchangeClient(), cache: try CacheDirectory(path: cachePath),
      settings: FileSettings(
        readTimeout: .seconds(20), revalidationInterval: .seconds(600)),
      cacheByteLimit: nil, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let names = contents.keys.filter { name in !listings.contains { name.hasPrefix($0) } }.sorted()
    let sources = MountSources(
      files: try Self.files(names, of: server),
      listings: try listings.map {
        ListingSource(path: String($0.dropLast()), url: try RemoteURL(server.url("/" + $0)))
      })
    fileSystem = FileSystem(
      mountpoint: "/mnt/files", tree: FileTree(sources: sources, environment: environment),
      environment: environment)
  }

  deinit {
    fileSystem.abandon()
    server.stop()
    try? FileManager.default.removeItem(atPath: cachePath)
  }

  /// The sources of files of a server.
  static func files(_ names: [String], of server: RangeServer) throws -> [FileSource] {
    try names.map { FileSource(path: $0, url: try RemoteURL(server.url("/" + $0))) }
  }

  /// Bytes that depend on the offset.
  static func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) }
  }

  func lookup(_ name: String, in parent: UInt64 = root) async -> Answer {
    await TestReply.to { fileSystem.lookup(parent, name, $0) }
  }

  /// The inode of an existing name.
  func inode(_ name: String, in parent: UInt64 = root) async throws -> UInt64 {
    try #require(await lookup(name, in: parent).entry).inode.rawValue
  }

  func open(_ inode: UInt64, flags: CInt = O_RDONLY, acceptsOpens: Bool = true) async -> Answer {
    await TestReply.to(acceptsOpens: acceptsOpens) { fileSystem.open(inode, flags: flags, $0) }
  }

  func read(_ handle: OpenHandle, at offset: Int64, _ byteCount: Int) async -> Answer {
    await TestReply.to {
      fileSystem.read(handle, offset: offset, byteCount: byteCount, $0)
    }
  }

  func attributes(_ inode: UInt64) async -> Answer {
    await TestReply.to { fileSystem.attributes(inode, $0) }
  }

  func write(_ text: String, to handle: OpenHandle) async -> Answer {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: text.utf8.count, alignment: 1)
    defer { bytes.deallocate() }
    bytes.copyBytes(from: text.utf8)
    return await TestReply.to { fileSystem.write(handle, UnsafeRawBufferPointer(bytes), $0) }
  }

  /// Writes commands to `.control`.
  func command(_ text: String) async throws -> Answer {
    let inode = try await inode(".control")
    let handle = try #require(await open(inode, flags: O_WRONLY | O_TRUNC).handle)
    defer { fileSystem.release(inode, handle) }
    return await write(text, to: handle)
  }

  /// The content of a file that `name` opens, as `cat` reads it.
  func contents(_ name: String) async throws -> String {
    let inode = try await inode(name)
    let handle = try #require(await open(inode).handle)
    defer { fileSystem.release(inode, handle) }
    return try #require(await read(handle, at: 0, 1 << 20).text)
  }

  /// Returns when the server has received a request for `name`, or fails after 20 s.
  func waitForRequest(_ name: String) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    while !server.targets.contains("/" + name) {
      try #require(.now < deadline, "no request")
      try await Task.sleep(for: .milliseconds(2))
    }
  }
}
