import MountControl
import Testing

/// Commands in `.control` are parsed as documented, or refused with a reason.
@Suite struct ControlParserTests {
  private func parse(_ text: String) throws(ControlRefusal) -> [ControlCommand] {
    try ControlParser.commands(text.utf8)
  }

  private func files(_ verb: FileVerb, _ names: String...) -> ControlCommand {
    .files(verb, names.map(NamePattern.init))
  }

  @Test("Every verb takes names, in order")
  func verbs() throws {
    for verb in FileVerb.allCases {
      #expect(
        try parse("\(verb.rawValue) a.bin d/*.iso\n") == [files(verb, "a.bin", "d/*.iso")])
    }
  }

  @Test("Only pause, resume and refresh go without a name", arguments: FileVerb.allCases)
  func withoutNames(verb: FileVerb) throws {
    if [.pause, .resume, .refresh].contains(verb) {
      #expect(try parse(verb.rawValue) == [files(verb)])
    } else {
      #expect(throws: ControlRefusal.self) { try parse("\(verb.rawValue)\n") }
    }
  }

  @Test(
    "Words are separated by blanks, but not within quotes",
    arguments: [
      ("evict a b", ["a", "b"]), ("evict\ta \t b  ", ["a", "b"]), ("  evict a", ["a"]),
      (#"evict "a b" c"#, ["a b", "c"]), (#"evict a" "b"#, ["a b"]),
      (#"evict "a\"b""#, ["a\"b"]), (#"evict "a\\b""#, [#"a\b"#]), (#"evict "a\*""#, [#"a\*"#]),
      (#"evict a\ b"#, [#"a\ b"#]), (#"evict \""#, [#"\""#]), (#"evict a\\b"#, [#"a\\b"#]),
      ("evict é", ["é"]), ("evict #a", ["#a"]), ("evict a\u{A0}b", ["a\u{A0}b"]),
    ])
  func words(line: String, names: [String]) throws {
    #expect(try parse(line) == [.files(.evict, names.map(NamePattern.init))])
  }

  @Test("Empty lines are skipped, and the last line may lack its newline")
  func lines() throws {
    #expect(try parse("") == [])
    #expect(try parse("\n \n\t\n") == [])
    #expect(try parse("pause\n\nresume a\n") == [files(.pause), files(.resume, "a")])
    #expect(try parse("pause\nresume") == [files(.pause), files(.resume)])
  }

  @Test(
    "Settings take one number",
    arguments: [
      ("connections 1", .connections(1)), ("connections 64", .connections(64)),
      ("connections auto", .connections(nil)), ("rate-limit 0", .rateLimit(nil, [])),
      ("rate-limit 1", .rateLimit(1, [])), ("rate-limit 500K", .rateLimit(512_000, [])),
      ("rate-limit 10m", .rateLimit(10 << 20, [])), ("rate-limit 2G", .rateLimit(2 << 30, [])),
      ("rate-limit 10M/s", .rateLimit(10 << 20, [])),
      ("rate-limit 1 M", .rateLimit(1, [NamePattern("M")])),
      ("rate-limit 0 a \"b c\" *", .rateLimit(nil, ["a", "b c", "*"].map(NamePattern.init))),
    ] as [(String, ControlCommand)])
  func settings(line: String, command: ControlCommand) throws {
    #expect(try parse(line) == [command])
  }

  @Test(
    "What is no command is refused with EINVAL, and a good line beside it does not help",
    arguments: [
      "x", "Pause", "PAUSE", "pause\r", "evict", "prefetch ", "pin\t", "connections",
      "connections 0", "connections 65", "connections -1", "connections +1", "connections 1 2",
      "connections 99999999999999999999", "connections 1.5", "connections Auto", "rate-limit",
      "rate-limit -1",
      "rate-limit M", "rate-limit a 1M", "rate-limit 1M/h", "rate-limit /s",
      "rate-limit 0x10",
      "rate-limit 9223372036854775807K", "evict \"a", "evict a\\", "evict \"\"", "\"\"",
      "evict a\0", "evict a\u{7}", "evict \u{7F}", "evict \u{85}", "evict a\u{B}b",
    ])
  func refused(line: String) {
    for text in [line, line + "\n", "pause\n" + line + "\n", line + "\npause\n"] {
      do {
        let commands = try parse(text)
        Issue.record("\(text.debugDescription) is taken for \(commands)")
      } catch {
        #expect(error.errno == 22)
        #expect(!error.description.isEmpty)
      }
    }
  }

  @Test(
    "Bytes that are not UTF-8 are refused",
    arguments: [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xC3], [0xF5, 0x80, 0x80, 0x80]])
  func notUTF8(bytes: [UInt8]) {
    #expect(throws: ControlRefusal.invalid("not UTF-8")) {
      try ControlParser.commands(Array("evict a".utf8) + bytes + [0x0A])
    }
  }

  @Test(
    "A word of any name stands for that name",
    arguments: [
      "a.bin", "a b", #"a"b"#, #"a\b"#, "é ü", "[1].bin", "*", #"\"#, " ", "a\u{301}",
    ])
  func wordOfName(name: String) throws {
    let line = "evict " + ControlParser.word(name)
    #expect(try parse(line) == [files(.evict, name)])
    #expect(NamePattern(name).matches(name))
  }

  @Test(
    "Patterns match as the shell's do, and across slashes",
    arguments: [
      ("*", "a/b.bin", true), ("*.bin", "a/b.bin", true), ("a/*", "a/b.bin", true),
      ("b.bin", "a/b.bin", false), ("?.bin", "a.bin", true), ("?.bin", "ab.bin", false),
      ("[ab].bin", "b.bin", true), ("[!ab].bin", "b.bin", false), (#"\*"#, "*", true),
      (#"\*"#, "a", false), ("[", "[", true), ("[x", "[x", true), ("a", "A", false),
      ("", "a", false),
      (#"a\ b"#, "a b", true), ("*", ".hidden", true),
    ] as [(String, String, Bool)])
  func patterns(pattern: String, name: String, isMatch: Bool) {
    #expect(NamePattern(pattern).matches(name) == isMatch)
  }

  @Test("A pattern of many stars is decided at once", .timeLimit(.minutes(10)))
  func hostilePattern() {
    let pattern = NamePattern(String(repeating: "*a", count: 1000) + "b")
    #expect(!pattern.matches(String(repeating: "a", count: 4000)))
  }

  @Test("Every command is in the help")
  func help() {
    for verb in FileVerb.allCases {
      #expect(ControlHelp.text.contains("\n\(verb.rawValue) "), "\(verb)")
    }
  }
}
