import Glibc
import HTTPTransferCore
import LinuxSystem

/// A file of checksums as `sha256sum` and its relatives write it: `SHA256SUMS`.
///
/// Its lines are `HEX  NAME`, `HEX *NAME` or `SHA256 (NAME) = HEX`; empty lines and comments (`#`)
/// are skipped. The length of a hash tells its algorithm.
struct ChecksumFile {
  let path: String
  private var checksums: [PathKey: Checksum] = [:]

  /// The maximum size: a line for each of a million files.
  private static let maximumByteCount = 256 << 20

  /// - Throws: why it cannot be read, also that a pipe lasts beyond `end`.
  init(path: String, until end: ContinuousClock.Instant?) throws(CommandFailure) {
    self.path = path
    let bytes: [UInt8]
    do throws(ErrorNumber) {
      bytes = try StreamCalls.contents(
        ofFile: path, maximumByteCount: Self.maximumByteCount, until: end)
    } catch {
      if error.rawValue == ETIMEDOUT, end != nil { throw .overTime }
      throw CommandFailure("cannot read checksum file '\(path)'", error)
    }
    var number = 0
    for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      number += 1
      var text = String(decoding: line, as: UTF8.self)
      if text.hasSuffix("\r") { text.removeLast() }
      if text.isEmpty || text.hasPrefix("#") { continue }
      guard let (name, checksum) = Self.entry(text) else {
        throw CommandFailure(
          "\(path):\(number): a line is 'HEX  NAME', as sha256sum writes it")
      }
      // Of several for one name, the strongest counts: its hash is the longest.
      let key = PathKey(name)
      if let known = checksums[key], known.digest.count > checksum.digest.count { continue }
      checksums[key] = checksum
    }
  }

  /// The checksum of the file at `path`: that of its path, or else of its last name; nil if the
  /// file has none.
  func checksum(of path: String) -> Checksum? {
    guard !path.hasFinalSlash else { return nil }
    var relative = path[...]
    while relative.hasPrefix("./") { relative = relative.dropFirst(2) }
    let last = relative.split(separator: "/").last.map(String.init) ?? ""
    return checksums[PathKey(relative)] ?? checksums[PathKey(last)]
  }

  private static func entry(_ line: String) -> (name: String, checksum: Checksum)? {
    if let open = line.firstRange(of: " ("), let close = line.ranges(of: ") = ").last,
      open.upperBound <= close.lowerBound
    {
      return entry(
        digits: line[close.upperBound...], name: line[open.upperBound..<close.lowerBound])
    }
    guard let space = line.firstIndex(of: " ") else { return nil }
    let rest = line[space...].dropFirst()
    guard let mark = rest.first, mark == " " || mark == "*" else { return nil }
    return entry(digits: line[..<space], name: rest.dropFirst())
  }

  private static func entry(
    digits: Substring, name: Substring
  ) -> (name: String, checksum: Checksum)? {
    var name = name
    while name.hasPrefix("./") { name = name.dropFirst(2) }
    let algorithm: String
    switch digits.utf8.count {
    case 32: algorithm = "md5"
    case 40: algorithm = "sha-1"
    case 64: algorithm = "sha-256"
    case 96: algorithm = "sha-384"
    case 128: algorithm = "sha-512"
    default: return nil
    }
    guard !name.isEmpty, let checksum = try? Checksum("\(algorithm)=\(digits)") else { return nil }
    return (String(name), checksum)
  }
}
