import LinuxSystem

/// Small files beside the entries that make the next mount faster.
///
/// Nothing is synced, because their loss does no harm.
struct CacheNotes: Sendable {
  private let root: CacheRoot

  /// Longer notes are not read.
  private static let byteLimit = 1 << 20

  init(_ root: CacheRoot) { self.root = root }

  /// The text of the note `name`; nil if there is none, or if it cannot be read.
  func text(of name: String) -> String? {
    guard let file = try? SystemCalls.openForReading(name, in: root.version.rawValue)
    else { return nil }
    var bytes = [UInt8](repeating: 0, count: Self.byteLimit)
    guard let count = try? SystemCalls.read(file.rawValue, into: &bytes, at: 0) else { return nil }
    return String(validating: bytes.prefix(count), as: UTF8.self)
  }

  func store(_ text: String, _ name: String) throws(CacheError) {
    let temporary = name + ".new"
    let version = root.version.rawValue
    do throws(ErrorNumber) {
      let file = try SystemCalls.openOrCreateFile(temporary, in: version)
      try SystemCalls.truncate(file.rawValue, to: 0)
      try SystemCalls.write(file.rawValue, Array(text.utf8), at: 0)
      try SystemCalls.rename(temporary, to: name, in: version)
    } catch {
      throw CacheError(error, path: "\(root.path)/\(CacheRoot.versionName)/\(name)")
    }
  }

  func remove(_ name: String) { try? SystemCalls.unlink(name, in: root.version.rawValue) }
}
