internal import Glibc
internal import HTTPTransferCore
internal import MountStatus
internal import RemoteFiles

/// Extended attributes: the source of a file and how much of it is cached (`getfattr -d`).
///
/// From memory only, like `.status`.
struct ExtendedAttributes: Sendable {
  let inodes: InodeTable

  private static let prefix = "user.httpfs."

  func value(
    _ name: String, of number: UInt64, room: Int,
    _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    // `ls -l` asks for other attributes, such as those of access lists, for each file. The reply
    // that the mount does not support such attributes stops it from asking for every file.
    guard name.hasPrefix(Self.prefix) else { return reply.error(EOPNOTSUPP) }
    let key = name.dropFirst(Self.prefix.count)
    guard let value = all(of: number).first(where: { $0.key == key })?.value else {
      return reply.error(ENODATA)
    }
    reply.extendedAttribute(value, room: room)
  }

  func names(of number: UInt64, room: Int, _ reply: consuming some FileSystemReply & ~Copyable) {
    let names = all(of: number).map { Self.prefix + $0.key + "\0" }
    reply.extendedAttribute(Array(names.joined().utf8), room: room)
  }

  private func all(of number: UInt64) -> [(key: String, value: [UInt8])] {
    let file: RemoteFile
    var version: RemoteVersion?
    switch inodes.file(number) {
    case .described(let described, let owner): (file, version) = (owner, described)
    case .listed(let listed, _): file = listed
    case nil: return []
    }
    let status = file.status(passthrough: [])
    var attributes: [(key: String, value: [UInt8])] = []
    func append(_ key: String, _ value: String) { attributes.append((key, Array(value.utf8))) }
    append("url", status.url)
    append("state", status.state.rawValue)
    append("cached_bytes", String(status.cachedBytes))
    if let tag = version?.content.entityTag { attributes.append(("etag", tag.fieldBytes)) }
    if let date = version?.content.lastModified { append("last_modified", date) }
    if let digest = version?.verifiedSHA256 { append("sha256", digest) }
    return attributes
  }
}
