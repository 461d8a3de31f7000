/// What is wrong with a configuration file: one line that says what to do.
package struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
  package let message: String
  /// Counted from 1; nil if the error concerns no line.
  package let line: Int?

  package init(_ message: String, line: Int? = nil) {
    self.message = message
    self.line = line
  }

  package var description: String { line.map { "line \($0): \(message)" } ?? message }

  /// With the name of the file before it: `config.toml:3: …`.
  package func description(inFile path: String) -> String {
    "\(path)\(line.map { ":\($0)" } ?? ""): \(message)"
  }
}
