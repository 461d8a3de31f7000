import ExtentRecord
import Foundation
import HTTPTransfer
import HTTPTransferCore
import Logging
import RangeCache

@testable import RemoteFiles

/// A version of a file without a server, over its own cache directory.
///
/// Tests store its bytes themselves.
final class VersionOnDisk {
  let files: FileEnvironment
  let environment: MountEnvironment
  let version: RemoteVersion
  let path: String

  /// Creates a version of `length` bytes; `details` are the file's details in the list.
  init(length: Int64, details: SourceDetails? = nil) throws {
    path =
      FileManager.default.temporaryDirectory.path + "/httpfs-version-\(UUID().uuidString)"
    files = FileEnvironment(
      client: ExchangeClient(), cache: try CacheDirectory(path: path), settings: FileSettings(),
      cacheByteLimit: nil, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    environment = files.shared
    version = Self.makeVersion("a.bin", length: length, details: details, in: environment)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Creates another version, of its own file.
  static func makeVersion(
    _ name: String, length: Int64, details: SourceDetails? = nil, in environment: MountEnvironment
  ) -> RemoteVersion {
    // Port 1 of this machine refuses any request.
    guard let url = try? RemoteURL("http://127.0.0.1:1/\(name)") else {
      preconditionFailure("an ordinary URL")
    }
    let source = FileSource(path: name, url: url, details: details)
    let file = RemoteFile(
      source: source, cacheKey: CacheKey(source.cacheKeyText), environment: environment)
    return RemoteVersion(
      of: file,
      content: ContentVersion(entityTag: EntityTag(opaque: "v1"), completeLength: length))
  }
}

extension RemoteVersion {
  /// The file of the version.
  var remoteFile: RemoteFile {
    guard let file = home as? RemoteFile else { preconditionFailure("a version of no file") }
    return file
  }

  /// Stores `range` like the storage queue, as a part of the request `id`; each byte is `value`.
  func storeBytes(
    _ range: ByteRange, of id: SegmentID = SegmentID(rawValue: 0), value: UInt8 = 7
  ) throws {
    let bytes = [UInt8](repeating: value, count: Int(range.byteCount))
    let storer = ByteStorer(owner: self)
    for withDisk in [true, false] {
      let result = bytes.withUnsafeBytes { storer.put($0, as: range, withDisk: withDisk) }
      if try storer.take(result, of: id) { return }
    }
  }

  var presentExtents: [ByteRange] { snapshot().extents.extents }
}
