/// An error or a warning about one line of a list.
///
/// Errors are in ``SourceListError``, warnings in ``SourceList/warnings``.
///
/// The message never contains a query, a header's value or credentials.
package struct SourceDiagnostic: Sendable, Hashable, CustomStringConvertible {
  /// The list: a file name, `standard input`, or `URL`.
  package let sourceName: String

  /// The line, counted from 1; nil for the whole list.
  package let line: Int?

  /// What is wrong and, where it helps, what to do; one line.
  package let message: String

  package init(sourceName: String, line: Int?, message: String) {
    self.sourceName = sourceName
    self.line = line
    self.message = message
  }

  /// `urls.txt:12: message`.
  package var description: String {
    line.map { "\(sourceName):\($0): \(message)" } ?? "\(sourceName): \(message)"
  }
}
