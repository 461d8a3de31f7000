/// Why a list cannot be used: every error found, up to a limit.
public struct SourceListError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The number of errors, a screenful, at which reading stops.
  ///
  /// It is enough to show that the user has given the wrong file.
  public static let maximumDiagnosticCount = 20

  /// The errors, ascending by line; at least one.
  public let diagnostics: [SourceDiagnostic]

  /// Whether reading stopped at the limit, so there may be more errors.
  public let isTruncated: Bool

  public init(diagnostics: [SourceDiagnostic], isTruncated: Bool = false) {
    self.diagnostics = diagnostics
    self.isTruncated = isTruncated
  }

  /// The errors, one a line.
  public var description: String {
    let lines = diagnostics.map(\.description)
    return (isTruncated ? lines + ["too many errors; reading stopped"] : lines)
      .joined(separator: "\n")
  }
}
