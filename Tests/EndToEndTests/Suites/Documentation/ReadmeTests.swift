import Foundation
import Glibc
import Testing

/// The README and the tutorial are sufficient: their commands run as written.
extension RealMounts {
  @Suite struct Readme {
    /// The origin of `scripts/demo --serve`, whose files the documents read.
    private final class DemoOrigin {
      /// Scheme, host and port of its URLs.
      let base: String
      private let process: ChildProcess

      init(in sandbox: Sandbox) throws {
        let binaries = (try Products.httpfs as NSString).deletingLastPathComponent
        let process = try ChildProcess(
          ["\(Repository.directory)/scripts/demo", "--serve", "--port", "0"],
          environment: ["HTTPFS_BIN_DIR": binaries, "TMPDIR": sandbox.directory])
        self.process = process
        var found: String?
        _ = Deadline(after: .seconds(30)).wait {
          found = process.standardOutput.firstMatch(of: /The list is at (\S+)\/files\/urls.txt/)
            .map { String($0.1) }
          return found != nil || !process.isRunning
        }
        guard let found else {
          throw HarnessError("scripts/demo --serve: \(process.standardError)")
        }
        base = found
      }

      /// Ends it as Ctrl-C does.
      func stop() -> ChildProcess.Ending? {
        process.signal(SIGTERM)
        return process.wait(within: .seconds(10))
      }

      deinit { if process.isRunning { process.kill() } }
    }

    /// The shell blocks of a document, or of the section below one of its headings.
    private static func shellBlocks(
      of document: String, below heading: String? = nil
    ) throws -> [String] {
      var section = Substring(try Repository.text(of: document))
      if let heading {
        guard let start = section.range(of: "\n## \(heading)\n") else {
          throw HarnessError("\(document) has no heading '\(heading)'")
        }
        section = section[start.upperBound...]
        section = section[..<(section.range(of: "\n## ")?.lowerBound ?? section.endIndex)]
      }
      let blocks = section.matches(of: /(?s)```sh\n(.*?)```/).map { String($0.1) }
      guard !blocks.isEmpty else { throw HarnessError("no commands in \(document)") }
      return blocks
    }

    /// Runs commands in a clone, `home/httpfs`, that has built this `httpfs`.
    private func run(_ commands: String, in sandbox: Sandbox) throws -> CommandResult {
      let home = try sandbox.makeDirectory("home")
      let build = try sandbox.makeDirectory("home/httpfs/.build/release")
      try shell(
        "mkdir \(quoted("\(home)/bin")); ln -s \(quoted(try Products.httpfs)) \(quoted(build))")
      let script = try sandbox.write(commands, to: "commands.sh")
      return try EndToEndTests.run(
        ["bash", "-c", "cd ~/httpfs && exec bash -eux -o pipefail \"$0\"", script],
        environment: [
          "HOME": home, "XDG_CACHE_HOME": "", "PATH": "\(home)/bin:\(Host.administratorPath)",
        ], within: .seconds(120))
    }

    /// Replaces the steps that a test cannot do: the installation of packages, and the build.
    private static let prelude = """
      sudo() { "$@"; }
      scripts/install-deps() { [[ "$*" == "--build" ]]; }
      swift() { [[ "$*" == "build -c release" ]]; }

      """

    @Test func `the commands of the README work as they are written`() throws {
      let sandbox = try Sandbox()
      let origin = try DemoOrigin(in: sandbox)
      let install = try #require(
        Self.shellBlocks(of: "README.md", below: "Install").first { $0.contains("swift build") })
      let examples = try Self.shellBlocks(of: "README.md", below: "Five examples")
      #expect(examples.count == 5)
      let commands = ([Self.prelude, install] + examples).joined(separator: "\n")
        .replacing("/usr/local/bin/", with: "\"$HOME/bin/\"")
        .replacing("http://127.0.0.1:8080", with: origin.base)
      let result = try run(commands, in: sandbox)
      #expect(result.succeeded, "\(result.ending)\n\(result.output)\n\(result.error)")

      // The bytes of the generator are a mount's, and those of a download.
      let clone = sandbox.path("home/httpfs")
      let content = try shell(
        "curl -sS --noproxy '*' '\(origin.base)/data/copy.bin?length=128m&seed=7' | sha256sum"
      ).prefix(64)
      #expect(result.output.contains("\(content)  \(sandbox.path("home/remote/big/big.bin"))"))
      #expect(result.output.contains("HD 123456|1873.6"), "\(result.output)")
      #expect(result.output.contains("3 files, 1 complete"), "\(result.output)")
      for file in ["big.bin", "downloads/big/big.bin"] {
        #expect(FileStatus.byteCount(of: "\(clone)/\(file)") == 128 << 20, "\(file)")
      }
      #expect(MountTable.httpfs(at: sandbox.path("home/remote")) == nil)
      #expect(origin.stop() == .exited(128 + SIGTERM))
    }

    @Test func `the commands of the tutorial work as they are written`() throws {
      let sandbox = try Sandbox()
      let origin = try DemoOrigin(in: sandbox)
      let commands = try Self.shellBlocks(of: "docs/TUTORIAL.md").joined(separator: "\n")
        .replacing("http://127.0.0.1:8080", with: origin.base)
      let result = try run(commands, in: sandbox)
      #expect(result.succeeded, "\(result.ending)\n\(result.output)\n\(result.error)")
      #expect(result.output.contains("HD 123456|1873.6"), "\(result.output)")
      #expect(result.output.contains("big/big.bin complete    100%"), "\(result.output)")
      // After the unmount everything comes from the cache.
      #expect(result.output.contains(" cached (100%), 0 B fetched"), "\(result.output)")
      #expect(result.error.contains("unchanged since it was downloaded"), "\(result.error)")
      let left = try FileManager.default.contentsOfDirectory(atPath: sandbox.path("home"))
      #expect(left.sorted() == [".cache", "bin", "httpfs"])
      #expect(origin.stop() == .exited(128 + SIGTERM))
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
