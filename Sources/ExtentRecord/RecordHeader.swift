package import HTTPTransferCore

/// The header of a record file: the remote file and the version whose bytes the data file holds.
///
/// `docs/CACHE-FORMAT.md` gives the layout.
package struct RecordHeader: Equatable {
  package static let magic = Array("httpfsRC".utf8)

  /// The only version of the format that this code writes and reads.
  ///
  /// The directory `v1` may hold entries of later versions, which are left alone.
  package static let formatVersion: UInt32 = 1

  /// The bytes before the first field.
  package static let prefixByteCount = 64

  /// The minimum size of a header: the prefix and the checksum.
  package static let minimumByteCount = prefixByteCount + 8

  /// Servers may send at most 256 KiB in all fields together, so a longer header is damaged.
  package static let maximumByteCount = 512 << 10

  /// The source is only for people to read, so a long one is cut.
  package static let maximumSourceByteCount = 2048

  /// Seeds every checksum of this file, so that a block of an older file is not valid in it.
  package var salt: UInt64

  /// Identifies the data file.
  package var dataID: UInt64

  /// The SHA-256 that the entry is filed under.
  package var key: CacheKey

  package var version: ContentVersion

  /// The source of the bytes, without credentials; informational.
  package var source: String

  /// The URL, without credentials, of the server that described the version; nil if the file has
  /// one server, or if this is unknown.
  package var reference: String?

  /// The name of the data file in the entry's directory.
  package var dataName: String { "data-" + dataID.hex16 }

  /// The types of the fields that follow the prefix.
  private enum Field: UInt16 {
    case strongEntityTag = 1
    case weakEntityTag = 2
    case lastModified = 3
    case completeLength = 4
    case contentCoding = 5
    case source = 6
    case reference = 7
  }

  // MARK: Encoding

  /// The header as stored; nil if its fields are longer than a header may be.
  package func encoded() -> [UInt8]? {
    var fields: [UInt8] = []
    func append(_ field: Field, _ value: some Collection<UInt8>) {
      fields.append(littleEndian: field.rawValue)
      fields.append(littleEndian: UInt16(0))
      fields.append(littleEndian: UInt32(clamping: value.count))
      fields.append(contentsOf: value)
    }
    if let tag = version.entityTag {
      append(tag.isWeak ? .weakEntityTag : .strongEntityTag, tag.bytes)
    }
    if let date = version.lastModified { append(.lastModified, date.utf8) }
    if let length = version.completeLength {
      var value: [UInt8] = []
      value.append(littleEndian: length)
      append(.completeLength, value)
    }
    if let coding = version.contentCoding { append(.contentCoding, coding.utf8) }
    append(.source, cutSource.utf8)
    // A URL that is too long is left out.
    if let reference, reference.utf8.count <= Self.maximumSourceByteCount {
      append(.reference, reference.utf8)
    }

    let byteCount = Self.minimumByteCount + fields.count
    guard byteCount <= Self.maximumByteCount else { return nil }
    var bytes = Self.magic
    bytes.reserveCapacity(byteCount)
    bytes.append(littleEndian: Self.formatVersion)
    bytes.append(littleEndian: UInt32(byteCount))
    bytes.append(littleEndian: salt)
    bytes.append(littleEndian: dataID)
    bytes.append(contentsOf: key.bytes)
    bytes.append(contentsOf: fields)
    bytes.append(littleEndian: bytes.withUnsafeBytes { ContentHash.hash($0, seed: salt) })
    return bytes
  }

  /// The source, cut between two characters.
  private var cutSource: String {
    var cut = source
    while cut.utf8.count > Self.maximumSourceByteCount { cut.removeLast() }
    return cut
  }

  // MARK: Decoding

  /// The number of bytes of the header that starts with `prefix` (at least ``prefixByteCount``
  /// bytes); nil if that is not a header of this format version.
  package static func byteCount(ofHeaderStartingWith prefix: UnsafeRawBufferPointer) -> Int? {
    guard prefix.count >= prefixByteCount, formatVersion(of: prefix) == formatVersion else {
      return nil
    }
    return byteCount(ofAnyFormat: prefix)
  }

  /// The format version that a header of at least ``prefixByteCount`` bytes declares.
  static func formatVersion(of bytes: UnsafeRawBufferPointer) -> UInt32 {
    bytes.integer(at: 8, as: UInt32.self)
  }

  /// The number of bytes of the header that starts with `prefix` (at least ``prefixByteCount``
  /// bytes), of any format version; nil if that is not a header.
  static func byteCount(ofAnyFormat prefix: UnsafeRawBufferPointer) -> Int? {
    guard prefix.count >= prefixByteCount, prefix.starts(with: magic) else { return nil }
    let byteCount = Int(prefix.integer(at: 12, as: UInt32.self))
    return (minimumByteCount...maximumByteCount).contains(byteCount) ? byteCount : nil
  }

  /// Whether the checksum at the end of a header matches the rest.
  static func isWhole(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count >= minimumByteCount else { return false }
    let end = bytes.count - 8
    return bytes.integer(at: end, as: UInt64.self)
      == ContentHash.hash(
        UnsafeRawBufferPointer(rebasing: bytes[..<end]),
        seed: bytes.integer(at: 16, as: UInt64.self))
  }

  /// Reads a whole header; nil unless its checksum is right and its fields are valid.
  package init?(_ bytes: UnsafeRawBufferPointer) {
    guard Self.byteCount(ofHeaderStartingWith: bytes) == bytes.count, Self.isWhole(bytes) else {
      return nil
    }
    let end = bytes.count - 8
    salt = bytes.integer(at: 16, as: UInt64.self)
    dataID = bytes.integer(at: 24, as: UInt64.self)
    key = CacheKey(digest: Array(bytes[32..<Self.prefixByteCount]))
    version = ContentVersion()
    source = ""

    var offset = Self.prefixByteCount
    var seen: Set<UInt16> = []
    while offset < end {
      guard end - offset >= 8 else { return nil }
      let type = bytes.integer(at: offset, as: UInt16.self)
      let valueByteCount = Int(bytes.integer(at: offset + 4, as: UInt32.self))
      offset += 8
      guard valueByteCount <= end - offset, seen.insert(type).inserted else { return nil }
      let value = UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + valueByteCount)])
      offset += valueByteCount
      // Ignore fields of unknown types.
      guard let field = Field(rawValue: type) else { continue }
      guard read(field, value) else { return nil }
    }
  }

  private mutating func read(_ field: Field, _ value: UnsafeRawBufferPointer) -> Bool {
    if field == .completeLength {
      guard value.count == 8 else { return false }
      let length = value.integer(at: 0, as: Int64.self)
      guard (0...Int64.maximumFileOffset).contains(length) else { return false }
      version.completeLength = length
      return true
    }
    if field == .strongEntityTag || field == .weakEntityTag {
      guard version.entityTag == nil else { return false }
      version.entityTag = EntityTag(bytes: value, isWeak: field == .weakEntityTag)
      return version.entityTag != nil
    }
    guard let text = String(validating: value, as: UTF8.self) else { return false }
    switch field {
    case .lastModified: version.lastModified = text
    case .contentCoding: version.contentCoding = text
    case .source: source = text
    case .reference: reference = text
    case .completeLength, .strongEntityTag, .weakEntityTag: return false
    }
    return true
  }

  package init(
    salt: UInt64, dataID: UInt64, key: CacheKey, version: ContentVersion, source: String,
    reference: String? = nil
  ) {
    self.salt = salt
    self.dataID = dataID
    self.key = key
    self.version = version
    self.source = source
    self.reference = reference
  }
}
