package import HTTPTransferCore

/// The content of the header of an entry's record.
package enum StoredHead: Sendable, Equatable {
  /// The record is readable: it has the source of the bytes, as a URL without credentials and query
  /// values, and their version. The log may record a different complete length.
  case readable(source: String, version: ContentVersion)

  /// The header is damaged or belongs to another entry: a mount would fetch the file again.
  case damaged

  /// A later version of httpfs has written the record.
  case laterFormat

  /// There is no record, so there is no entry: a crash or an eviction left other files.
  case missing
}
