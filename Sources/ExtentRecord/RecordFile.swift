package import LinuxSystem

/// Creates record files.
///
/// Each is written under a temporary name and then renamed, so that the name `record` always refers
/// to a complete file.
package struct RecordFile {
  /// The name of an entry's record file.
  package static let name = "record"

  /// The start of the name of a record file that is being written.
  package static let temporaryPrefix = "record-"

  /// The start of the names of data files.
  package static let dataPrefix = "data-"

  package let descriptor: Descriptor
  /// The offset of the next record.
  package private(set) var position: Int64
  /// The number of the last record written.
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

  /// Replaces the entry's record by a new record file in one step and returns it.
  ///
  /// - Parameters:
  ///   - header: the encoded header.
  ///   - salt: the salt in that header.
  ///   - name: the name of the record file; by default that of an entry's record.
  ///   - temporaryName: its name until it is complete; nil for a unique name. A caller that gives a
  ///     name must keep other processes from using it meanwhile; an old file of that name is
  ///     removed.
  ///   - directory: the directory that holds it.
  ///   - isDurable: whether to wait until it is on the disk. If not, a loss of power may leave the
  ///     old record, the new one, or an incomplete one, which recovery ignores.
  ///   - fill: appends the first records.
  /// - Returns: the file, open for more records.
  /// - Throws: the error of the failed call. The record is then the old one, or the complete new
  ///   one.
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
      // Has no effect if the rename succeeded: the record then is complete, if not yet durable.
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
