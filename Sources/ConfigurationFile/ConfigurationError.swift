/// What is wrong with a configuration file: one line that says what to do.
public struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
  public let message: String
  /// Counted from 1; nil if the error concerns no line.
  public let line: Int?

  public init(_ message: String, line: Int? = nil) {
    self.message = message
    self.line = line
  }

  public var description: String { line.map { "line \($0): \(message)" } ?? message }

  /// With the name of the file before it: `config.toml:3: …`.
  public func description(inFile path: String) -> String {
    "\(path)\(line.map { ":\($0)" } ?? ""): \(message)"
  }
}
