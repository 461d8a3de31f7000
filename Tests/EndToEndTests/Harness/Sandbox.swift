import Foundation
import Glibc

/// A temporary directory with everything that one test starts; all of it ends with the test.
final class Sandbox {
  let directory: String
  private var mounts: [Mount] = []
  private var readers: [ChildProcess] = []
  private var disks: [TinyDisk] = []
  private var serverCount = 0
  private var mountCount = 0
  private var diskCount = 0
  private var authorityCount = 0

  init() throws {
    directory = try TemporaryDirectory.make("test")
  }

  deinit {
    for mount in mounts { mount.tearDown() }
    for reader in readers { reader.kill() }
    for disk in disks { disk.unmount() }
    // Include mounts that a test did not expect.
    for entry in mountsBelow {
      _ = try? run(["fusermount3", "-u", "-z", entry.mountpoint], within: .seconds(5))
    }
    // Never delete files of a mount that could not be detached.
    if mountsBelow.isEmpty { try? FileManager.default.removeItem(atPath: directory) }
  }

  /// The mounts in the sandbox, the newest first.
  private var mountsBelow: [MountTableEntry] {
    MountTable.entries().filter { $0.mountpoint.hasPrefix(directory + "/") }.reversed()
  }

  /// A path in the sandbox; creates no file.
  func path(_ name: String) -> String { "\(directory)/\(name)" }

  /// Creates a directory in the sandbox.
  func makeDirectory(_ name: String) throws -> String {
    let path = path(name)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  /// Writes text to a file in the sandbox.
  ///
  /// - Returns: its path.
  @discardableResult
  func write(_ text: String, to name: String) throws -> String {
    try write(Array(text.utf8), to: name)
  }

  /// Writes bytes to a file in the sandbox.
  ///
  /// - Returns: its path.
  @discardableResult
  func write(_ bytes: [UInt8], to name: String) throws -> String {
    let path = path(name)
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    return path
  }

  /// Starts an nginx on `root`.
  func nginx(
    root: String, locations: String = "", features: ServerFeatures = ServerFeatures()
  ) throws -> NginxServer {
    serverCount += 1
    return try NginxServer(
      root: root, directory: try makeDirectory("nginx\(serverCount)"), locations: locations,
      features: features)
  }

  /// Starts an Apache httpd on `root`.
  func apache(
    root: String, configuration: String = "", features: ServerFeatures = ServerFeatures()
  ) throws -> ApacheServer {
    serverCount += 1
    return try ApacheServer(
      root: root, directory: try makeDirectory("apache\(serverCount)"),
      configuration: configuration, features: features)
  }

  /// Creates a certificate authority.
  func certificateAuthority() throws -> CertificateAuthority {
    authorityCount += 1
    return try CertificateAuthority(directory: try makeDirectory("authority\(authorityCount)"))
  }

  /// Mounts a file system of `byteCount` bytes that the end of the test removes; this needs root.
  func tinyDisk(byteCount: Int64) throws -> TinyDisk {
    diskCount += 1
    let disk = try TinyDisk(at: try makeDirectory("disk\(diskCount)"), byteCount: byteCount)
    disks.append(disk)
    return disk
  }

  /// Writes a list of `urls`, one per line, and mounts it.
  func mount(urls: [String], options: [String] = [], cache: String = "cache") throws -> Mount {
    mountCount += 1
    let list = try write(urls.joined(separator: "\n") + "\n", to: "urls\(mountCount).txt")
    return try mount(source: list, options: options, cache: cache)
  }

  /// Mounts a list file or a URL.
  func mount(source: String, options: [String] = [], cache: String = "cache") throws -> Mount {
    mountCount += 1
    let mount = try Mount(
      source: source, mountpoint: try makeDirectory("mnt\(mountCount)"),
      cacheDirectory: path(cache), options: options)
    mounts.append(mount)
    return mount
  }

  /// Makes the sandbox end a mount that the test has started itself.
  func adopt(_ mount: Mount) -> Mount {
    mounts.append(mount)
    return mount
  }

  /// Starts a command that may block on a mount; the sandbox kills it at the latest.
  func start(_ arguments: [String], input: ChildProcess.Input = .none) throws -> ChildProcess {
    let reader = try ChildProcess(arguments, input: input)
    readers.append(reader)
    return reader
  }
}

/// Directories below the temporary directory of the test run.
enum TemporaryDirectory {
  /// Creates a directory for one caller, open to other users for the tests that need it.
  static func make(_ purpose: String) throws -> String {
    let base = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
    var template = Array("\(base)/httpfs-\(purpose)-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw HarnessError.systemCall("mkdtemp in \(base)") }
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard chmod(path, 0o755) == 0 else { throw HarnessError.systemCall("chmod") }
    // The kernel's table of mounts has real paths, which must compare equal with the names below.
    guard let real = realpath(path, nil) else { throw HarnessError.systemCall("realpath") }
    defer { free(real) }
    return String(cString: real)
  }
}
