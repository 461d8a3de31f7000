import Glibc
import HTTPTransferCore
import LinuxSystem

/// A file of checksums as `sha256sum` and its relatives write it: `SHA256SUMS`.
///
/// Its lines are `HEX  NAME`, `HEX *NAME` or `SHA256 (NAME) = HEX`; empty lines and comments (`#`)
/// are skipped. In lines of the first two kinds, the length of a hash tells its algorithm. Lines of
/// the last kind name it; those that name an unknown one are skipped.
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
      guard let line = Line(text) else {
        throw CommandFailure(
          "\(path):\(number): a line is 'HEX  NAME', as sha256sum writes it")
      }
      guard case .checksum(let checksum, let name) = line else { continue }
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

  /// What a line says.
  private enum Line {
    case checksum(Checksum, name: String)
    case unknownAlgorithm

    /// Reads a line; nil if it is of no known form.
    init?(_ text: String) {
      if let open = text.firstRange(of: " ("), let close = text.ranges(of: ") = ").last,
        open.upperBound <= close.lowerBound
      {
        guard let algorithm = Checksum.Algorithm(named: text[..<open.lowerBound]) else {
          self = .unknownAlgorithm
          return
        }
        self.init(
          algorithm, text[close.upperBound...], name: text[open.upperBound..<close.lowerBound])
        return
      }
      guard let space = text.firstIndex(of: " ") else { return nil }
      let rest = text[space...].dropFirst()
      guard let mark = rest.first, mark == " " || mark == "*" else { return nil }
      let digits = text[..<space]
      let algorithm = Checksum.Algorithm.allCases.first {
        $0.digestByteCount * 2 == digits.utf8.count
      }
      guard let algorithm else { return nil }
      self.init(algorithm, digits, name: rest.dropFirst())
    }

    private init?(_ algorithm: Checksum.Algorithm, _ digits: Substring, name: Substring) {
      var name = name
      while name.hasPrefix("./") { name = name.dropFirst(2) }
      guard !name.isEmpty,
        let checksum = try? Checksum(algorithm: algorithm, hexadecimal: digits)
      else { return nil }
      self = .checksum(checksum, name: String(name))
    }
  }
}
