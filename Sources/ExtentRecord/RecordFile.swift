/// Creates record files: written under a temporary name, then renamed into place, so that at any
/// moment the name `record` stands for a whole file.
package struct RecordFile {
  /// The name of an entry's record file.
  package static let name = "record"

  /// The start of the name of a record file that is being written.
  package static let temporaryPrefix = "record-"

  /// The start of the names of data files.
  package static let dataPrefix = "data-"

  package let descriptor: Descriptor
  /// Where the next record goes.
  package private(set) var position: Int64
  /// The number of the record written last.
  package private(set) var sequence: UInt64 = 0

  private let salt: UInt64
  private var pending: [UInt8]
  private static let flushByteCount = 256 << 10

  private init(descriptor: Descriptor, salt: UInt64, header: [UInt8]) {
    self.descriptor = descriptor
    self.salt = salt
    position = 0
    pending = header
  }

  /// Makes a new record file the entry's record, in one step, and returns it.
  ///
  /// - Parameters:
  ///   - header: the encoded header.
  ///   - salt: the salt in that header.
  ///   - name: what the record file is called, an entry's name for it unless said otherwise.
  ///   - temporaryName: what it is called until it is whole; nil for a name that no other has. Who
  ///     gives one lets no other process use it meanwhile; what was left under it is removed.
  ///   - directory: the directory that holds it.
  ///   - isDurable: whether to wait until it is on the disk. Without, a loss of power may leave
  ///     the old record, the new one or one that is not whole, which recovery takes for none.
  ///   - fill: appends the first records.
  /// - Returns: the file, open for more.
  /// - Throws: the failed call's error; the old record then is in place, or the new one as a whole.
  package static func replace(
    header: [UInt8], salt: UInt64, name: String = name, temporaryName: String? = nil,
    in directory: Descriptor, isDurable: Bool,
    fill: (inout RecordFile) throws(ErrorNumber) -> Void = { _ in }
  ) throws(ErrorNumber) -> RecordFile {
    let temporaryName = temporaryName ?? "\(name)-\(salt.hex16)"
    let descriptor = try SystemCalls.createAnew(temporaryName, in: directory.rawValue)
    do throws(ErrorNumber) {
      var file = RecordFile(descriptor: descriptor, salt: salt, header: header)
      try fill(&file)
      try file.flush()
      if isDurable { try SystemCalls.sync(descriptor.rawValue) }
      try SystemCalls.rename(temporaryName, to: name, in: directory.rawValue)
      if isDurable { try SystemCalls.sync(directory.rawValue) }
      return file
    } catch {
      // Without effect where the rename was done: the record then is whole, if not yet durable.
      try? SystemCalls.unlink(temporaryName, in: directory.rawValue)
      throw error
    }
  }

  /// Appends a record.
  package mutating func append(_ record: LogRecord) throws(ErrorNumber) {
    sequence += 1
    let words = record.encoded(sequence: sequence, salt: salt)
    withUnsafeBytes(of: words) { pending.append(contentsOf: $0) }
    if pending.count >= Self.flushByteCount { try flush() }
  }

  private mutating func flush() throws(ErrorNumber) {
    try SystemCalls.write(descriptor.rawValue, pending, at: position)
    position += Int64(pending.count)
    pending.removeAll(keepingCapacity: true)
  }
}
