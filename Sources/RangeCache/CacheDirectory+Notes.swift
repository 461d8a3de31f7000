import ExtentRecord
import Glibc

/// A small file beside the entries, for what makes the next mount faster and is no loss: nothing is synced.
extension CacheDirectory {
  /// The origins and what was learned of them.
  public static let hostsName = "hosts"

  /// More is not read.
  private static let noteByteLimit = 1 << 20

  /// The text of the note `name`; nil where there is none that can be read.
  public func note(_ name: String) -> String? {
    guard let file = try? SystemCalls.open(name, in: version.rawValue, flags: O_RDONLY | O_NONBLOCK)
    else { return nil }
    var bytes = [UInt8](repeating: 0, count: Self.noteByteLimit)
    guard let count = try? SystemCalls.read(file.rawValue, into: &bytes, at: 0) else { return nil }
    return String(validating: bytes.prefix(count), as: UTF8.self)
  }

  /// Replaces the note `name`.
  ///
  /// - Throws: what the file system says; the note is as it was then.
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

  /// Forgets the note `name`.
  public func removeNote(_ name: String) { try? SystemCalls.unlink(name, in: version.rawValue) }
}
