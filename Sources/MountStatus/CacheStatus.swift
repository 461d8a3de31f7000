internal import TextFormat

/// The state of the cache of a mount.
package struct CacheStatus: Sendable, Hashable, Decodable {
  /// Why the cache does not store what is fetched, in one line; nil while it does.
  ///
  /// Programs can still read files, from memory.
  package var error: String?

  /// How often the cache has failed in this mount.
  package var failures: Int

  package init(error: String? = nil, failures: Int = 0) {
    self.error = error
    self.failures = failures
  }

  enum CodingKeys: String, CodingKey {
    case error, failures
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(CodingKeys.error, error)
      writer.member(CodingKeys.failures, failures)
    }
  }
}
