import Foundation
import Testing

/// The README is sufficient: its commands run as written.
extension RealMounts {
  @Suite struct Readme {
    /// The shell blocks below a heading of the README, joined.
    static func shellBlocks(below heading: String, in text: String) throws -> String {
      guard let start = text.range(of: "\n## \(heading)\n") else {
        throw HarnessError("the README has no heading '\(heading)'")
      }
      let rest = text[start.upperBound...]
      let section = rest[..<(rest.range(of: "\n## ")?.lowerBound ?? rest.endIndex)]
      let blocks = section.matches(of: /(?s)```sh\n(.*?)```/).map { String($0.1) }
      guard !blocks.isEmpty else { throw HarnessError("no commands below '\(heading)'") }
      return blocks.joined(separator: "\n")
    }

    /// Replaces the steps that a test cannot do: the installation of packages, and the build.
    private static let prelude = """
      sudo() { "$@"; }
      apt-get() { printf '%s\\n' "$@" >> "$HOME/apt"; }
      swift() { [[ "$*" == "build -c release" ]]; }

      """

    /// The commands with the test's server instead of example.org.
    private func local(_ commands: String, _ base: String, checksum: String) -> String {
      commands
        .replacing("https://user@example.org", with: base.replacing("//", with: "//user@"))
        .replacing("https://example.org", with: base)
        .replacing("/usr/local/bin/", with: "\"$HOME/bin/\"")
        .replacing(/sha-256=[0-9a-f]+…/, with: "sha-256=\(checksum)")
    }

    /// Creates a file for each URL of the commands, so a new URL in the README needs no change
    /// here.
    private func makeFiles(for commands: String, below root: String) throws {
      // A URL that ends in a slash is a listing of others.
      for match in commands.matches(of: /https:\/\/example\.org\/([\w.\/-]*\w)(\/?)/)
      where match.2.isEmpty {
        let path = "\(root)/\(match.1)"
        let content =
          path.hasSuffix(".tar.gz") ? "tar cz -C /etc hostname" : "head -c 300000 /dev/urandom"
        try shell(
          "mkdir -p \"$(dirname \(quoted(path)))\" && \(content) > \(quoted(path))")
      }
    }

    @Test func `the commands of the README work as they are written`() throws {
      let sandbox = try Sandbox()
      let text = try Repository.text(of: "README.md")
      let start = try Self.shellBlocks(below: "Quick start", in: text)
      let transfers = try Self.shellBlocks(below: "Downloads and uploads", in: text)
      let control = try Self.shellBlocks(below: "Control", in: text)
      let mountLine = try #require(
        start.split(separator: "\n").first { $0.contains("httpfs mount ") })
      // Commands to a mount refer to the mount of the quick start.
      let commands = [start, transfers, String(mountLine), control, "httpfs unmount ~/remote"]
        .joined(separator: "\n")

      let root = try sandbox.makeDirectory("www")
      try makeFiles(for: commands, below: root)
      _ = try sandbox.makeDirectory("inbox")
      let nginx = try sandbox.nginx(
        root: root,
        locations: "autoindex on; location /inbox/ { root \(sandbox.directory); dav_methods PUT; }")
      let checksum = try shell("sha256sum < \(quoted("\(root)/a.bin"))").prefix(64)
      let home = try sandbox.makeDirectory("home")
      let clone = try sandbox.makeDirectory("home/httpfs/.build/release")
      try shell(
        "mkdir \(quoted("\(home)/bin")); ln -s \(quoted(try Products.httpfs)) \(quoted(clone))")
      let script = try sandbox.write(
        Self.prelude
          + local(commands, String(nginx.url("").dropLast()), checksum: String(checksum)),
        to: "readme.sh")

      let result = try run(
        [
          "bash", "-c",
          "cd ~/httpfs && head -c 100000 /dev/zero > report.pdf && exec bash -eux -o pipefail \"$0\"",
          script,
        ],
        environment: [
          "HOME": home, "XDG_CACHE_HOME": "", "PATH": "\(home)/bin:\(Host.administratorPath)",
        ], within: .seconds(120))
      #expect(result.succeeded, "\(result.ending)\n\(result.output)\n\(result.error)")
      // The results match the comments beside the commands.
      let image = try shell("sha256sum < \(quoted("\(root)/images/disc.iso"))").prefix(64)
      #expect(result.output.contains("\(image)  \(home)/remote/isos/disc.iso"))
      #expect(result.output.contains("2 files, 1 complete"), "\(result.output)")
      for file in ["disc.iso", "downloads/isos/disc.iso", "downloads/train.parquet", "a.bin"] {
        #expect(FileStatus.byteCount(of: "\(home)/httpfs/\(file)") == 300_000, "\(file)")
      }
      #expect(FileStatus.byteCount(of: "\(home)/httpfs/hostname") != nil)
      #expect(FileStatus.byteCount(of: sandbox.path("inbox/report.pdf")) == 100_000)
      #expect(MountTable.httpfs(at: "\(home)/remote") == nil)

      // It installed only packages that the tests' own script installs.
      let dependencies = try Repository.text(of: "scripts/install-deps")
      for word in try String(contentsOfFile: "\(home)/apt", encoding: .utf8).split(separator: "\n")
      where word != "install" {
        #expect(dependencies.contains(word), "scripts/install-deps does not know \(word)")
      }
    }

    @Test(arguments: ["README.md", "CHANGELOG.md", "docs"])
    func `each link of the documents leads somewhere`(path: String) throws {
      let directory = "\(Repository.directory)/\(path)"
      let files =
        path.hasSuffix(".md")
        ? [path]
        : try FileManager.default.subpathsOfDirectory(atPath: directory)
          .filter { $0.hasSuffix(".md") }.map { "\(path)/\($0)" }
      for file in files {
        let folder = (file as NSString).deletingLastPathComponent
        for match in try Repository.text(of: file).matches(of: /\]\(([^)\s:]+)\)/) {
          let parts = match.1.split(separator: "#", omittingEmptySubsequences: false)
          let target =
            parts[0].isEmpty ? file : folder.isEmpty ? "\(parts[0])" : "\(folder)/\(parts[0])"
          #expect(
            FileManager.default.fileExists(atPath: "\(Repository.directory)/\(target)"),
            "\(file): \(match.1)")
          guard parts.count == 2, target.hasSuffix(".md") else { continue }
          let headings = try Repository.text(of: target).split(separator: "\n")
            .filter { $0.hasPrefix("#") }.map { Self.anchor($0.drop { $0 == "#" || $0 == " " }) }
          #expect(headings.contains(String(parts[1])), "\(file): no heading for \(match.1)")
        }
      }
    }

    /// A heading as an anchor on GitHub.
    private static func anchor(_ heading: Substring) -> String {
      String(
        heading.lowercased().compactMap { character in
          character == " "
            ? "-"
            : character.isLetter || character.isNumber || "-_".contains(character) ? character : nil
        })
    }
  }
}
