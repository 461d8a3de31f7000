import Testing

@testable import ConfigurationFile

@Suite struct OptionCatalogTests {
  private let catalog = OptionCatalog([
    .init(names: ["connections"], isFlag: false, isRepeating: false, isPath: false),
    .init(names: ["H", "header"], isFlag: false, isRepeating: true, isPath: false),
    .init(names: ["log-file"], isFlag: false, isRepeating: false, isPath: true),
    .init(names: ["header-file"], isFlag: false, isRepeating: true, isPath: true),
    .init(names: ["tree"], isFlag: true, isRepeating: false, isPath: false),
    .init(names: ["sizes"], isFlag: true, isRepeating: false, isPath: false),
    .init(names: ["no-sizes"], isFlag: true, isRepeating: false, isPath: false),
    .init(names: ["config"], isFlag: false, isRepeating: false, isPath: true),
    .init(names: ["h", "help"], isFlag: true, isRepeating: false, isPath: false),
  ])
  private let paths = ConfiguredPaths(directory: "/etc/httpfs", home: "/home/u")

  private func words(_ lines: String) throws -> [String] {
    let file = try ConfigurationFile(Array("[mount]\n\(lines)\n".utf8))
    return try catalog.words(for: file.defaults["mount"] ?? [], resolving: paths).flatMap(\.words)
  }

  @Test(arguments: [
    ("connections = 4", ["--connections=4"]),
    ("connections = \"4\"", ["--connections=4"]),
    ("tree = true", ["--tree"]),
    ("tree = false", []),
    ("sizes = false", ["--no-sizes"]),
    ("sizes = true", ["--sizes"]),
    ("no-sizes = true", ["--no-sizes"]),
    ("no-sizes = false", ["--sizes"]),
    ("header = \"A: 1\"", ["--header=A: 1"]),
    ("header = [\"A: 1\", \"--tree\"]", ["--header=A: 1", "--header=--tree"]),
    ("header = []", []),
    ("log-file = \"/var/log/x\"", ["--log-file=/var/log/x"]),
    ("log-file = \"x.log\"", ["--log-file=/etc/httpfs/x.log"]),
    (
      "header-file = [\"~/a\", \"~b\"]",
      ["--header-file=/home/u/a", "--header-file=/etc/httpfs/~b"]
    ),
  ])
  func `settings become words of a command line`(lines: String, expected: [String]) throws {
    #expect(try words(lines) == expected)
  }

  @Test(arguments: [
    ("conections = 4", "unknown key 'conections'"),
    ("H = \"A: 1\"", "unknown key 'H'"),
    ("config = \"x\"", "unknown key 'config'"),
    ("help = true", "unknown key 'help'"),
    ("connections = true", "'connections' takes a value"),
    ("connections = [\"1\"]", "'connections' takes one value, not a list"),
    ("tree = \"yes\"", "'tree' is true or false"),
    ("tree = [\"yes\"]", "'tree' is true or false"),
  ])
  func `a key or value that no option has is told with its line`(lines: String, message: String) {
    let error = #expect(throws: ConfigurationError.self) { try words("\n" + lines) }
    #expect(error?.line == 3)
    #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
  }

  @Test(arguments: [
    (["a", "b"], [], ["a", "b"]),
    (["--tree", "a", "-H", "@x", "b"], ["--tree", "-H", "@x"], ["a", "b"]),
    (["--header=@x", "@a"], ["--header=@x"], ["@a"]),
    (["--connections", "3", "--", "--tree", "a"], ["--connections", "3"], ["--tree", "a"]),
    (["-", "--unknown", "a"], ["--unknown"], ["-", "a"]),
  ])
  func `a command line is split into options with their values and the rest`(
    line: [String], options: [String], positionals: [String]
  ) {
    let split = catalog.split(line)
    #expect(split.options == options)
    #expect(split.positionals == positionals)
  }

  @Test(arguments: [
    ("-", "-"), ("", ""), ("https://h/x", "https://h/x"), ("~", "/home/u"),
    ("a/b", "/etc/httpfs/a/b"),
  ])
  func `paths are relative to the file, and URLs and - mean themselves`(text: String, path: String)
  {
    #expect(paths.resolved(text) == path)
    #expect(ConfiguredPaths(directory: "/", home: nil).resolved("~/x") == "/~/x")
  }
}
