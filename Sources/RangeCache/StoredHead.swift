public import HTTPTransferCore

/// What the header of an entry's record says.
public enum StoredHead: Sendable, Equatable {
  /// The record can be read: where the bytes came from, as a URL without credentials and query
  /// values, and of which version they are. The log may record another complete length.
  case readable(source: String, version: ContentVersion)

  /// The header is damaged or another entry's: a mount would fetch the file anew.
  case damaged

  /// A later version of httpfs has written the record.
  case laterFormat

  /// There is no record, hence no entry: what a crash or an eviction has left.
  case missing
}
