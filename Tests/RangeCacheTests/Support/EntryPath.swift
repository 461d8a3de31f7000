import ExtentRecord

@testable import RangeCache

extension CacheDirectory {
  /// The path of an entry's directory.
  func path(of key: CacheKey) -> String { context.folder(of: key).path }
}
