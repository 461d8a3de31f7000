import Testing

@testable import ConfigurationFile

@Suite struct ConfigurationFileTests {
  private func parse(_ text: String) throws(ConfigurationError) -> ConfigurationFile {
    try ConfigurationFile(Array(text.utf8))
  }

  @Test func `sections are defaults of commands and named mounts, with the lines of their keys`()
    throws
  {
    let file = try parse(
      """
      # defaults
      [mount]
      connections = 4
      tree = true
      umask = 0o027

      [mounts.isos]
      source = "isos.urls"
      mountpoint = "~/isos"
      header = ["A: 1", "B: 2"]
      read-timeout = 2.5
      [mounts."a.b"]
      source = "https://example.org/"

      [get]
      jobs = 8
      """)
    #expect(
      file.defaults["mount"] == [
        .init(key: "connections", value: .text("4"), line: 3),
        .init(key: "tree", value: .boolean(true), line: 4),
        .init(key: "umask", value: .text("0o27"), line: 5),
      ])
    #expect(file.defaults["get"]?.map(\.key) == ["jobs"])
    #expect(file.defaults["put"] == nil)
    #expect(file.mounts.map(\.name) == ["isos", "a.b"])
    let isos = try file.mount(named: "isos")
    #expect(isos.source.value == .text("isos.urls"))
    #expect(isos.mountpoint?.value == .text("~/isos"))
    #expect(
      isos.settings == [
        .init(key: "header", value: .list(["A: 1", "B: 2"]), line: 10),
        .init(key: "read-timeout", value: .text("2.5"), line: 11),
      ])
    #expect(try file.mount(named: "a.b").mountpoint == nil)
  }

  @Test func `an empty file is a configuration without settings`() throws {
    #expect(try parse("").defaults.isEmpty)
    #expect(try parse("# nothing\n").mounts.isEmpty)
    #expect(try parse("[mounts]\n").mounts.isEmpty)
  }

  @Test(arguments: [
    ("[mount\n", 1, "no TOML"),
    ("\n\nx = \"open\n", 3, "no TOML"),
    ("[mount]\na = 1\na = 2\n", 3, "no TOML"),
    ("[mount]\numask = 077\n", 2, "no TOML"),
    ("[mout]\n", 1, "unknown section 'mout'"),
    ("mount = 3\n", 1, "'mount' is a section"),
    ("connections = 3\n", 1, "unknown section 'connections'"),
    ("[mounts]\nx = 1\n", 2, "write a section [mounts.x]"),
    ("[mounts.x]\nmountpoint = \"/m\"\n", 1, "has no source"),
    ("[mounts.\"a/b\"]\nsource = \"s\"\n", 1, "a mount's name is made of"),
    ("[mounts.x]\nsource = [\"s\"]\n", 2, "'source' must be a string"),
    ("[mounts.x]\nsource = \"\"\n", 2, "'source' must be a string"),
    ("[mount]\nwhen = 2026-11-21\n", 2, "'when' must be a string"),
    ("[mount]\nheader = [[\"A: 1\"]]\n", 2, "'header' must be a string"),
    ("[mount]\nheader = [true]\n", 2, "'header' must be a string"),
    ("[mount]\n[mount.deeper]\nx = 1\n", 2, "unknown section 'deeper'"),
    ("[mount]\nproxy = \"a\\u0000b\"\n", 2, "NUL"),
  ])
  func `what is wrong is told with its line`(text: String, line: Int, message: String) {
    let error = #expect(throws: ConfigurationError.self) { try parse(text) }
    #expect(error?.line == line, "\(text)")
    #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
  }

  @Test func `a mount that is not there is named with those that are`() throws {
    let file = try parse("[mounts.b]\nsource = \"s\"\n[mounts.a]\nsource = \"s\"\n")
    let error = #expect(throws: ConfigurationError.self) { try file.mount(named: "c") }
    #expect(error?.message == "there is no section [mounts.c]; it has a, b")
  }

  @Test func `bytes of any kind give a file or an error`() {
    var seed: UInt64 = 42
    func next() -> UInt64 {
      seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return seed >> 33
    }
    let alphabet = Array("[]{}=\"'\\#.,\nmounts.x=1tre\u{0}é".utf8) + [0xFF, 0x80]
    for _ in 0..<5000 {
      let bytes = (0..<Int(next() % 60)).map { _ in alphabet[Int(next()) % alphabet.count] }
      _ = try? ConfigurationFile(bytes)
    }
    let deep = String(repeating: "[", count: 100_000)
    #expect(throws: ConfigurationError.self) { try parse("[mount]\nheader = \(deep)") }
  }

  @Test(arguments: [
    "[" + String(repeating: "a.", count: 100_000) + "a]\n",
    String(repeating: "a.", count: 100_000) + "a = 1\n",
    "[mount]\nx = {" + String(repeating: "a.", count: 100_000) + "a = 1}\n",
    "\"=#\\\"[" + "\"." + String(repeating: "'b.#'.", count: 100_000) + "a = 1\n",
  ])
  func `Keys of very many parts are refused, not parsed until the stack ends`(text: String) {
    #expect { try parse(text) } throws: { error in
      (error as? ConfigurationError)?.message == "a key of more than 16 parts"
    }
  }

  @Test func `Dots that part no key are of any number`() throws {
    let dots = String(repeating: ".", count: 1000)
    let text = """
      # \(dots)
      [mount]
      header = ["X: \(dots)", 'Y: \(dots)']
      user-agent = \"""a
      \(dots)\"""
      """
    #expect(try parse(text).defaults["mount"]?.count == 2)
    #expect(DottedKeys.lineOfTooMany(in: Array(("x = [1.5, 1.5]\n" + text).utf8)) == nil)
  }

  @Test func `A list of very many elements is refused before the command line is made of it`()
    throws
  {
    let header = { (count: Int) in
      "[mount]\nheader = [" + String(repeating: "\"a: b\",", count: count) + "]\n"
    }
    #expect(try parse(header(1000)).defaults["mount"]?.count == 1)
    #expect { try parse(header(1001)) } throws: { error in
      (error as? ConfigurationError)?.description
        == "line 2: 'header' has more than 1000 elements"
    }
  }

  @Test func `More named mounts than a person writes are refused`() throws {
    let file = { (count: Int) in
      (0..<count).map { "[mounts.m\($0)]\nsource = \"x\"\n" }.joined()
    }
    #expect(try parse(file(500)).mounts.count == 500)
    #expect { try parse(file(501)) } throws: { error in
      (error as? ConfigurationError)?.description
        == "line 1001: more than 500 sections [mounts.NAME]; write several files"
    }
  }
}
