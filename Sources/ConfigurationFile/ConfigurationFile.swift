/// The configuration file: defaults of commands, and named mounts.
///
/// ```toml
/// [mount]                      # of every mount
/// cache-size = "20G"
///
/// [mounts.isos]                # httpfs mount @isos
/// source = "isos.urls"
/// mountpoint = "~/isos"
/// header = ["X-Team: 5"]
/// ```
///
/// Keys are the long names of the commands' options. An ``OptionCatalog`` knows the options; this
/// type does not.
package struct ConfigurationFile: Sendable, Equatable {
  /// A key and its value.
  package struct Setting: Sendable, Equatable {
    package enum Value: Sendable, Equatable {
      case boolean(Bool)
      /// A string, or a number as it is written on a command line.
      case text(String)
      case list([String])
    }

    package let key: String
    package let value: Value
    /// From 1.
    package let line: Int
  }

  /// A section `[mounts.NAME]`.
  package struct NamedMount: Sendable, Equatable {
    package let name: String
    package let line: Int
    /// The list or URL.
    package let source: Setting
    /// Nil if the command line must name it.
    package let mountpoint: Setting?
    /// All other settings.
    package let settings: [Setting]
  }

  /// The commands that have a section of defaults.
  package static let commands = ["mount", "get", "put"]
  private static let mountsName = "mounts"
  /// `httpfs doctor` parses the settings of each mount as a command line, which takes 1 to 2 ms.
  private static let mostMounts = 500

  /// The settings of `[mount]`, `[get]` and `[put]`, if these sections exist.
  package private(set) var defaults: [String: [Setting]] = [:]
  /// In the order of the file.
  package private(set) var mounts: [NamedMount] = []

  /// Parses the text of a file.
  package init(_ bytes: [UInt8]) throws(ConfigurationError) {
    guard bytes.count <= 1 << 20 else { throw ConfigurationError("larger than 1 MiB") }
    for node in try TOMLNode.document(bytes) {
      if node.key == Self.mountsName {
        let sections = try Self.table(node)
        guard sections.count <= Self.mostMounts else {
          throw ConfigurationError(
            "more than \(Self.mostMounts) sections [\(Self.mountsName).NAME]; write several files",
            line: sections[Self.mostMounts].line)
        }
        for section in sections { mounts.append(try Self.mount(section)) }
      } else if Self.commands.contains(node.key) {
        var settings: [Setting] = []
        for key in try Self.table(node) { settings.append(try Setting(key)) }
        defaults[node.key] = settings
      } else {
        throw ConfigurationError(
          "unknown section '\(node.key)'; there are \(Self.sections)", line: node.line)
      }
    }
  }

  private static let sections =
    commands.map { "[\($0)]" }.joined(separator: ", ") + " and [\(mountsName).NAME]"

  /// The mount that `httpfs mount @NAME` means.
  package func mount(named name: String) throws(ConfigurationError) -> NamedMount {
    if let mount = mounts.first(where: { $0.name == name }) { return mount }
    let known =
      mounts.isEmpty
      ? "it has no mounts" : "it has \(mounts.map(\.name).sorted().joined(separator: ", "))"
    throw ConfigurationError("there is no section [\(Self.mountsName).\(name)]; \(known)")
  }

  private static func table(_ node: TOMLNode) throws(ConfigurationError) -> [TOMLNode] {
    guard case .table(let nodes) = node.value else {
      throw ConfigurationError(
        "'\(node.key)' is a section, not a key; there are \(sections)", line: node.line)
    }
    return nodes
  }

  private static func mount(_ section: TOMLNode) throws(ConfigurationError) -> NamedMount {
    // The name is used for a directory and a service.
    let name = section.key
    guard !name.isEmpty, name.utf8.count <= 128, !name.hasPrefix("."),
      name.allSatisfy({
        $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0))
      })
    else {
      throw ConfigurationError(
        "a mount's name is made of letters, digits, '-', '_' and '.'", line: section.line)
    }
    guard case .table(let nodes) = section.value else {
      throw ConfigurationError(
        "'\(name)' is a mount's name here: write a section [\(mountsName).\(name)]",
        line: section.line)
    }
    var source: Setting?
    var mountpoint: Setting?
    var settings: [Setting] = []
    for node in nodes {
      let setting = try Setting(node)
      switch setting.key {
      case "source": source = try setting.requiringText()
      case "mountpoint": mountpoint = try setting.requiringText()
      default: settings.append(setting)
      }
    }
    guard let source else {
      throw ConfigurationError(
        "[\(mountsName).\(name)] has no source: a list file or a URL", line: section.line)
    }
    return NamedMount(
      name: name, line: section.line, source: source, mountpoint: mountpoint, settings: settings)
  }
}

extension ConfigurationFile.Setting {
  private static let mostElements = 1000

  init(_ node: TOMLNode) throws(ConfigurationError) {
    key = node.key
    line = node.line
    switch node.value {
    case .boolean(let value): self.value = .boolean(value)
    case .array(let elements):
      // Each element becomes a word for the parser of the command line, which takes quadratic time.
      guard elements.count <= Self.mostElements else {
        throw ConfigurationError(
          "'\(node.key)' has more than \(Self.mostElements) elements", line: node.line)
      }
      var texts: [String] = []
      for element in elements { texts.append(try Self.text(element, of: node)) }
      value = .list(texts)
    default: value = .text(try Self.text(node, of: node))
    }
  }

  /// A string or a number as a word of a command line.
  private static func text(
    _ value: TOMLNode, of node: TOMLNode
  ) throws(ConfigurationError) -> String {
    switch value.value {
    case .string(let text):
      guard !text.utf8.contains(0) else {
        throw ConfigurationError("'\(node.key)' holds a NUL character", line: node.line)
      }
      return text
    case .integer(let number): return "\(number)"
    case .number(let number): return "\(number)"
    case .table:
      throw ConfigurationError(
        "unknown section '\(node.key)' of a section", line: node.line)
    case .boolean, .time, .array:
      throw ConfigurationError(
        "'\(node.key)' must be a string, a number, true, false, or a list of strings",
        line: node.line)
    }
  }

  func requiringText() throws(ConfigurationError) -> Self {
    guard case .text(let text) = value, !text.isEmpty else {
      throw ConfigurationError("'\(key)' must be a string", line: line)
    }
    return self
  }
}
