internal import ExtentRecord
internal import HTTPTransferCore
internal import LinuxSystem

/// The record of a finished download, stored with the file.
///
/// It lets a later download of the same URL ask whether the server still has that version, and
/// replace the file. It is stored in extended attributes of the file, `user.httpfs.url` and so on.
/// If the file system has none, it is stored in a file beside it (`NAME.httpfs-origin`), with one
/// attribute per line.
struct ResultRecord: Sendable {
  /// A hash of the source of the bytes: the URL without userinfo and signature, range and decoding.
  var key: CacheKey
  /// The URL as it may be shown.
  var source: String
  var version: ContentVersion
  /// A hash of the checksums that the bytes were compared with; nil if there were none.
  var checks: String?

  fileprivate enum Field: String, CaseIterable {
    case url, key, etag
    case modified = "last-modified"
    case coding, checks, stamp
  }

  /// The first line of the file that replaces the attributes.
  private static let heading = "httpfs-origin 1"
  private static let maximumByteCount: Int64 = 128 << 10

  // MARK: Writing

  /// Attaches the record to a complete file.
  ///
  /// - Returns: false if the file system has no attributes, or no room for these.
  func attach(to file: Descriptor) throws(ErrorNumber) -> Bool {
    let values = values(try ResultStamp(of: file))
    do throws(ErrorNumber) {
      // Write the stamp last: without it, the others prove nothing.
      try SystemCalls.setAttribute(Self.name(.stamp), of: file.rawValue, to: nil)
      for (field, value) in values {
        try SystemCalls.setAttribute(Self.name(field), of: file.rawValue, to: value)
      }
      return true
    } catch {
      return false
    }
  }

  /// Writes the record beside a file that already has its name.
  func write(beside file: Descriptor, at location: FileLocation) throws(ErrorNumber) {
    let directory = location.directory.rawValue
    var text = Array((Self.heading + "\n").utf8)
    for (field, value) in values(try ResultStamp(of: file)) {
      if let value { text += Array("\(field.rawValue) ".utf8) + value + [UInt8(ascii: "\n")] }
    }
    let temporary = location.newOriginName
    // A file there that is not such a record stays.
    if let status = try? SystemCalls.status(location.originName, in: directory) {
      guard status.isOwnAlone, Self.lines(at: location) != nil else { return }
    }
    let created = try SystemCalls.createAnew(temporary, in: directory)
    do throws(ErrorNumber) {
      try SystemCalls.write(created.rawValue, text, at: 0)
      try SystemCalls.sync(created.rawValue)
      try SystemCalls.rename(temporary, to: location.originName, in: directory)
    } catch {
      try? SystemCalls.unlink(temporary, in: directory)
      throw error
    }
  }

  private func values(_ stamp: ResultStamp) -> [(Field, [UInt8]?)] {
    [
      (.url, Array(source.utf8)), (.key, Array(key.hex.utf8)),
      (.etag, version.entityTag?.fieldBytes),
      (.modified, version.lastModified.map { Array($0.utf8) }),
      (.coding, version.contentCoding.map { Array($0.utf8) }),
      (.checks, checks.map { Array($0.utf8) }), (.stamp, Array(stamp.text.utf8)),
    ]
  }

  private static func name(_ field: Field) -> String { "user.httpfs.\(field.rawValue)" }

  // MARK: Reading

  /// The attributes that identify a finished download.
  struct Finding {
    var key: String
    var version: ContentVersion
    var checks: String?
    /// The text of the file's stamp at that time.
    var stamp: String

    fileprivate init?(_ value: (Field) -> [UInt8]?) {
      func text(_ field: Field) -> String? {
        value(field).flatMap { String(validating: $0, as: UTF8.self) }
      }
      guard let key = text(.key), let stamp = text(.stamp) else { return nil }
      self.key = key
      self.stamp = stamp
      checks = text(.checks)
      version = ContentVersion(
        entityTag: value(.etag).flatMap { EntityTag(field: $0) },
        lastModified: text(.modified).flatMap { HTTPDate.secondsSince1970($0) == nil ? nil : $0 },
        contentCoding: text(.coding))
      // Only strong modification dates are recorded.
      version.dateStrength = .strong
    }
  }

  /// The record of an open file; nil if there is none.
  static func find(_ file: Descriptor, at location: FileLocation) -> Finding? {
    let attributes = Finding { SystemCalls.attribute(name($0), of: file.rawValue) }
    if let attributes { return attributes }
    guard let lines = lines(at: location) else { return nil }
    return Finding { field in
      let start = Array("\(field.rawValue) ".utf8)
      return lines.first { $0.starts(with: start) }.map { Array($0.dropFirst(start.count)) }
    }
  }

  /// The lines of the file that replaces the attributes; nil if it is missing or not this user's.
  private static func lines(at location: FileLocation) -> [ArraySlice<UInt8>]? {
    guard
      let file = try? SystemCalls.openForReading(
        location.originName, in: location.directory.rawValue),
      let status = try? SystemCalls.status(file.rawValue), status.isOwnAlone,
      status.byteCount <= maximumByteCount
    else { return nil }
    var bytes = [UInt8](repeating: 0, count: Int(status.byteCount))
    guard let count = try? SystemCalls.read(file.rawValue, into: &bytes, at: 0) else { return nil }
    let lines = bytes[..<count].split(separator: UInt8(ascii: "\n"))
    guard lines.first?.elementsEqual(heading.utf8) == true else { return nil }
    return lines
  }
}
