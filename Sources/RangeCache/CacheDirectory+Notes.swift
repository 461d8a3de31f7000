import Glibc
import LinuxSystem

/// Small files beside the entries that make the next mount faster. Nothing is synced, because their
/// loss does no harm.
extension CacheDirectory {
  /// The origins and what this mount learned about them.
  public static let hostsName = "hosts"

  /// Longer notes are not read.
  private static let noteByteLimit = 1 << 20

  /// The text of the note `name`; nil if there is none, or if it cannot be read.
  public func note(_ name: String) -> String? {
    guard let file = try? SystemCalls.open(name, in: version.rawValue, flags: O_RDONLY | O_NONBLOCK)
    else { return nil }
    var bytes = [UInt8](repeating: 0, count: Self.noteByteLimit)
    guard let count = try? SystemCalls.read(file.rawValue, into: &bytes, at: 0) else { return nil }
    return String(validating: bytes.prefix(count), as: UTF8.self)
  }

  /// Replaces the note `name`.
  ///
  /// - Throws: the error of the file system; the note is then unchanged.
  public func storeNote(_ text: String, _ name: String) throws(CacheError) {
    let temporary = name + ".new"
    do throws(ErrorNumber) {
      let file = try SystemCalls.openOrCreateFile(temporary, in: version.rawValue)
      try SystemCalls.truncate(file.rawValue, to: 0)
      try SystemCalls.write(file.rawValue, Array(text.utf8), at: 0)
      try SystemCalls.rename(temporary, to: name, in: version.rawValue)
    } catch {
      throw CacheError(error, path: "\(path)/\(Self.versionName)/\(name)")
    }
  }

  /// Deletes the note `name`.
  public func removeNote(_ name: String) { try? SystemCalls.unlink(name, in: version.rawValue) }
}
