import Foundation
import Testing

/// Every message and state in docs/TROUBLESHOOTING.md exists in the program.
@Suite struct Troubleshooting {
  private static let document = "docs/TROUBLESHOOTING.md"

  /// The sources of the program without comments; string literals that `+` joins are merged.
  private static let sources = Result {
    var text = ""
    for file in try Repository.swiftFiles(below: "Sources") {
      for line in try Repository.text(of: "Sources/\(file)").split(separator: "\n") {
        let line = line.drop { $0 == " " }
        if line.hasPrefix("//") { continue }
        if line.hasPrefix("+ \""), text.hasSuffix("\"") {
          text.removeLast()
          text += line.dropFirst(3)
        } else {
          text += "\n" + line
        }
      }
    }
    return text
  }

  /// Whether the sources contain `text`.
  private static func isInSources(_ text: String) throws -> Bool {
    try sources.get().range(of: text, options: .literal) != nil
  }

  /// The texts that the sources must contain for `message`: its parts between the `…`.
  private static func fragments(_ message: String) -> [String] {
    message.split(separator: "…").map { $0.trimmingCharacters(in: .whitespaces) }
      .filter { $0.count > 3 }
  }

  @Test func `each message of the document is one of the program`() throws {
    let tables = MarkdownTable.all(in: try Repository.text(of: Self.document))
      .filter { $0.header.first == "message" }
    #expect(tables.count >= 6)
    for row in tables.flatMap(\.rows) {
      let messages = MarkdownTable.codeSpans(row.cells[0])
      #expect(!messages.isEmpty, "\(Self.document):\(row.line) names no message")
      for fragment in messages.flatMap(Self.fragments) {
        #expect(
          try Self.isInSources(fragment),
          "\(Self.document):\(row.line): no message of the program holds '\(fragment)'")
      }
    }
  }

  @Test func `the check sees a message that is not there`() throws {
    let fragments = Self.fragments("cannot frobnicate '…': …")
    #expect(fragments == ["cannot frobnicate '"])
    #expect(try !Self.isInSources(fragments[0]))
    // Literals are joined, and comments are removed.
    #expect(try Self.isInSources("run 'chmod 666 /dev/fuse', which is what udev does"))
    #expect(try !Self.isInSources("Prepares the directory to mount on."))
  }

  @Test func `each option and command of the document exists`() throws {
    let text = try Repository.text(of: Self.document)
    let help = try CommandHelp.ofHTTPFS().displayedSubcommands()
    let options = Set(help.values.flatMap(\.options.keys))
    for match in text.matches(of: /`(?:[^`\n]* )?(--[a-z][a-z-]*)[^`\n]*`/) {
      let option = String(match.1)
      // Options of other programs: of docker and podman, and of mount and curl in the examples.
      if ["--device", "--cap-add", "--help"].contains(option) { continue }
      #expect(options.contains(option), "no command has \(option)")
    }
    for match in text.matches(of: /`httpfs ([a-z][a-z-]*)/) {
      let name = String(match.1)
      #expect(
        help.keys.contains { $0 == name || $0.hasPrefix(name + " ") }, "no command '\(name)'")
    }
  }
}
