import Foundation
import Testing

/// The man page and `--help` agree.
@Suite struct ManPages {
  /// The package's docs/man.
  private static let directory = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("docs/man")

  private func page() throws -> ManPage {
    let url = Self.directory.appendingPathComponent("httpfs.1")
    return ManPage(try String(contentsOf: url, encoding: .utf8))
  }

  private static let general = "GENERAL OPTIONS"

  @Test func `each command of --help is in the man page, and the other way round`() throws {
    let page = try page()
    let commands = try CommandHelp.ofHTTPFS().displayedSubcommands()
    #expect(Set(page.titles.keys) == Set(commands.keys))
    for (name, command) in commands {
      // The parser knows them as one list.
      let positionals = name == "mount" ? ["source", "mountpoint"] : command.positionals
      #expect(page.arguments[name] == positionals, "arguments of '\(name)'")
    }
  }

  @Test func `each option of --help is in the man page, and the other way round`() throws {
    let page = try page()
    let general = try #require(page.sections[Self.general]).options
    #expect(general.keys.sorted() == ["--help", "--version", "-h"])
    let help = try CommandHelp.ofHTTPFS()
    #expect(Set(help.options.keys) == Set(general.keys))
    for (name, command) in help.displayedSubcommands() {
      let own = command.options.filter { general[$0.key] == nil }
      let described = page.options(of: name)
      #expect(Set(own.keys) == Set(described.keys), "options of '\(name)'")
      for (option, value) in own {
        #expect(described[option] == .some(value), "the value of \(option) of '\(name)'")
      }
    }
  }

  @Test func `the comparison sees what is missing on either side`() throws {
    let text = """
      .Ss fetch
      .D1 Nm Cm fetch Oo options Oc Ar url ...
      .It Fl o , Fl -output Ar "some path"
      .It Fl -quiet
      The
      .Sx ACCESS OPTIONS .
      .Sh ACCESS OPTIONS
      .It Fl -key Ar file
      """
    let page = ManPage(text)
    #expect(
      page.options(of: "fetch")
        == ["-o": "some path", "--output": "some path", "--quiet": nil, "--key": "file"])
    #expect(page.arguments == ["fetch": ["url"]])
    #expect(page.options(of: "other").isEmpty)
  }

  @Test(arguments: ["httpfs.1", "mount.httpfs.8"])
  func `groff has nothing to complain of`(name: String) throws {
    let path = Self.directory.appendingPathComponent(name).path
    let result = try run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path])
    #expect(result.succeeded && result.error.isEmpty, "\(result.error)")
    #expect(!result.output.isEmpty)
  }

  @Test func `each shell gets a completion script that names the commands`() throws {
    let commands = try CommandHelp.ofHTTPFS().displayedSubcommands().keys
    for shell in ["bash", "zsh", "fish"] {
      let script = try output(of: [try Products.httpfs, "--generate-completion-script", shell])
      for command in commands {
        let last = try #require(command.split(separator: " ").last)
        #expect(script.contains(last), "\(command) in \(shell)'s completions")
      }
    }
  }

  @Test func `bash completes commands, options and files`() throws {
    let sandbox = try Sandbox()
    let script = try output(of: [try Products.httpfs, "--generate-completion-script", "bash"])
    let file = try sandbox.write(script, to: "completions")
    try sandbox.write("", to: "urls-here.txt")
    /// The words that bash offers to complete the last of `words`.
    func completions(_ words: [String]) throws -> [String] {
      let quotedWords = words.map(quoted).joined(separator: " ")
      let text = try shell(
        """
        cd \(quoted(sandbox.directory))
        set +u; . \(quoted(file))
        specification=$(complete -p httpfs); function=${specification#*-F }; function=${function%% *}
        COMP_WORDS=(\(quotedWords)); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
        $function httpfs "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" || true
        printf '%s\\n' "${COMPREPLY[@]}"
        """)
      return text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    }
    #expect(try completions(["httpfs", "unm"]) == ["unmount"])
    #expect(try completions(["httpfs", "mount", "--cache-d"]).contains("--cache-dir"))
    #expect(try completions(["httpfs", "mount", "urls-h"]).contains("urls-here.txt"))
  }
}
