/// An error or a warning about one line of a list.
///
/// Errors are in ``SourceListError``, warnings in ``SourceList/warnings``.
///
/// The message never contains a query, a header's value or credentials.
public struct SourceDiagnostic: Sendable, Hashable, CustomStringConvertible {
  /// The list: a file name, `standard input`, or `URL`.
  public let sourceName: String

  /// The line, counted from 1; nil for the whole list.
  public let line: Int?

  /// What is wrong and, where it helps, what to do; one line.
  public let message: String

  public init(sourceName: String, line: Int?, message: String) {
    self.sourceName = sourceName
    self.line = line
    self.message = message
  }

  /// `urls.txt:12: message`.
  public var description: String {
    line.map { "\(sourceName):\($0): \(message)" } ?? "\(sourceName): \(message)"
  }
}
