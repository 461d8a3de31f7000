/// Why a list cannot be used: every error that was found in it, up to a limit.
public struct SourceListError: Error, Sendable, Equatable, CustomStringConvertible {
  /// How many errors are collected before reading stops: a screenful.
  ///
  /// Whoever passes a wrong
  /// file sees soon enough that it is wrong.
  public static let maximumDiagnosticCount = 20

  /// The errors, ascending by line; at least one.
  public let diagnostics: [SourceDiagnostic]

  /// Whether reading stopped at the limit, so that there may be more errors.
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
