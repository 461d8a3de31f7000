/// How the cache under a mount is.
public struct CacheStatus: Sendable, Hashable, Decodable {
  /// Why the cache does not take what is fetched, in one line; nil while it does.
  ///
  /// Files are read all the same then, from memory.
  public var error: String?

  /// How often it has failed in this mount.
  public var failures: Int

  public init(error: String? = nil, failures: Int = 0) {
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
