/// Why a list cannot be used: every error found, up to a limit.
package struct SourceListError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The number of errors, a screenful, at which reading stops.
  ///
  /// It is enough to show that the user has given the wrong file.
  package static let maximumDiagnosticCount = 20

  /// The errors, ascending by line; at least one.
  package let diagnostics: [SourceDiagnostic]

  /// Whether reading stopped at the limit, so there may be more errors.
  package let isTruncated: Bool

  package init(diagnostics: [SourceDiagnostic], isTruncated: Bool = false) {
    self.diagnostics = diagnostics
    self.isTruncated = isTruncated
  }

  /// The errors, one per line.
  package var description: String {
    let lines = diagnostics.map(\.description)
    return (isTruncated ? lines + ["too many errors; reading stopped"] : lines)
      .joined(separator: "\n")
  }
}
