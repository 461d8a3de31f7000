import Glibc
import HTTPTypes
import SourceList

/// Reads the header fields from a command line, its files and its environment.
struct HeaderOptions {
  /// Whether to refuse fields that would change the meaning of a range request.
  let refusesReserved: Bool

  /// The maximum number of fields.
  ///
  /// With the same number from a list, and its own fields, a request has some 200.
  static let maximumCount = 100

  /// All fields in the order of `--header`, `--header-file`, `--header-env`.
  func fields(of options: AccessOptions) throws(CommandFailure) -> HTTPFields {
    var fields = HTTPFields()
    for text in options.header {
      if text.hasPrefix("@") {
        try append(file: String(text.dropFirst()), to: &fields)
      } else {
        try append(text, from: "--header", to: &fields)
      }
    }
    for file in options.headerFile { try append(file: file, to: &fields) }
    for assignment in options.headerEnv { try append(assignment: assignment, to: &fields) }
    return fields
  }

  private func append(file path: String, to fields: inout HTTPFields) throws(CommandFailure) {
    for (number, line) in numberedLines(try accessFile(path, "header file")) where !line.isEmpty {
      try append(line, from: "\(path):\(number)", to: &fields)
    }
  }

  /// Reads `NAME=VARIABLE`.
  private func append(
    assignment: String, to fields: inout HTTPFields
  ) throws(CommandFailure) {
    let parts = assignment.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, HTTPField.Name(String(parts[0])) != nil, !parts[1].isEmpty else {
      throw CommandFailure(
        "--header-env is written NAME=VARIABLE, the name of a field and of an environment variable")
    }
    guard let value = environmentVariable(String(parts[1])) else {
      throw CommandFailure(
        "--header-env: the environment variable '\(parts[1])' is not set, or empty")
    }
    try append("\(parts[0]): \(value)", from: "--header-env \(parts[0])", to: &fields)
  }

  /// Parses `Name: value`.
  ///
  /// An error does not show the value, which may be a secret.
  private func append(
    _ text: String, from place: String, to fields: inout HTTPFields
  ) throws(CommandFailure) {
    guard let field = HeaderField(line: text), let name = HTTPField.Name(field.name) else {
      throw CommandFailure("\(place): a header is written 'Name: value', on one line")
    }
    // `http` is a possible name: what follows -H is not the value that was meant for it.
    guard !["http", "https"].contains(field.name.lowercased()) || !field.value.hasPrefix("//")
    else {
      throw CommandFailure(
        "\(place): a header is written 'Name: value', and this is a URL; did -H lose its value?")
    }
    guard !field.isFraming, !refusesReserved || !field.isReserved else {
      throw CommandFailure("\(place): httpfs sets the field '\(field.name)' itself")
    }
    guard fields.count < Self.maximumCount else {
      throw CommandFailure("\(place): more than \(Self.maximumCount) header fields")
    }
    fields.append(HTTPField(name: name, value: field.value))
  }
}
