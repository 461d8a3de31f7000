import Foundation
import Glibc
import Testing

/// The exit codes of docs/TROUBLESHOOTING.md.
extension RealMounts {
  @Suite struct ExitCodes {
    /// A command line that ends without a signal.
    ///
    /// `@` stands for a directory with `urls.txt`, a list of one URL without a server, `bad.txt`, a
    /// list with an error, and `empty`, a directory.
    struct Ending: CustomTestStringConvertible {
      let code: CInt
      let arguments: [String]

      init(_ code: CInt, _ arguments: String) {
        self.code = code
        self.arguments = arguments.split(separator: " ").map(String.init)
      }

      var testDescription: String { "\(arguments.joined(separator: " ")) → \(code)" }
    }

    static let endings = [
      Ending(0, "--help"), Ending(0, "--version"), Ending(0, "mount --help"),
      Ending(0, "list @/urls.txt"),
      Ending(1, "list @/missing.txt"), Ending(1, "list @/bad.txt"),
      Ending(1, "mount --cache-dir @/cache @/bad.txt @/empty"),
      Ending(1, "mount --cache-dir @/cache --daemon @/bad.txt @/empty"),
      Ending(1, "mount --cache-dir @/cache @/urls.txt @/missing"),
      Ending(1, "unmount @/empty"), Ending(1, "status @/empty"), Ending(1, "prefetch @/empty a"),
      Ending(1, "pause @/empty"), Ending(1, "rate-limit @/empty 1M"),
      Ending(1, "cache ls --cache-dir @/missing"), Ending(1, "cache clear --cache-dir @/missing"),
      Ending(1, "doctor --cache-dir @/urls.txt"), Ending(1, "replay @/missing"),
      Ending(6, "get --retries 0 -o @/x http://127.0.0.1:9/x"),
      Ending(6, "put --retries 0 @/urls.txt http://127.0.0.1:9/x"),
      Ending(64, "mount"), Ending(64, "mount --connections 65 @/urls.txt @/empty"),
      Ending(64, "status --json --watch @/empty"), Ending(64, "connections @/empty many"),
      Ending(64, "rate-limit @/empty fast"), Ending(64, "cache evict"), Ending(64, "get"),
      Ending(64, "put a"), Ending(64, "frobnicate"),
    ]

    @Test(arguments: endings)
    func `a command ends with the code of the document`(ending: Ending) throws {
      let sandbox = try Sandbox()
      try sandbox.write("http://127.0.0.1:9/a\n", to: "urls.txt")
      try sandbox.write("this is no URL\n", to: "bad.txt")
      _ = try sandbox.makeDirectory("empty")
      let arguments = ending.arguments.map {
        $0.hasPrefix("@") ? sandbox.directory + $0.dropFirst() : $0
      }
      let result = try run([try Products.httpfs] + arguments, within: .seconds(30))
      #expect(result.ending == .exited(ending.code), "\(result.output)\(result.error)")
      // The doctor prints its findings to standard output.
      let isSilent = ending.code == 0 || ending.arguments.first == "doctor"
      #expect(result.error.isEmpty == isSilent, "\(result.error)")
    }

    @Test func `every command ends with 64 at an option that it does not have`() throws {
      let commands = try CommandHelp.ofHTTPFS().displayedSubcommands()
      for name in commands.keys.sorted() {
        let words = name.split(separator: " ").map(String.init)
        let result = try run([try Products.httpfs] + words + ["--no-such-option"])
        #expect(result.ending == .exited(64), "\(name): \(result.error)")
        #expect(result.error.contains("Usage: httpfs \(name)"), "\(name): \(result.error)")
      }
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `a mount that is asked to end does so with 0`(signal: CInt) throws {
      let sandbox = try Sandbox()
      let mount = try sandbox.mount(urls: ["http://127.0.0.1:9/a"])
      mount.process.signal(signal)
      #expect(mount.process.wait(within: .seconds(20)) == .exited(0))
      #expect(!mount.isMounted)
    }

    @Test func `get ends with 128 and the number of the signal`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 64 << 20, seed: 5, query: "rate=1m")
      let process = try work.start("get", url)
      #expect(work.waitForPart(of: "a.bin"))
      process.signal(SIGTERM)
      #expect(process.wait(within: .seconds(20)) == .exited(128 + SIGTERM))
      // A reader that closes the pipe, which would end a filter by SIGPIPE.
      let codes = try output(of: [
        "bash", "-c", "\"$0\" get -o - \"$1\" | head -c 1 >/dev/null; echo ${PIPESTATUS[0]}",
        try Products.httpfs, origin.url("b.bin", length: 64 << 20, seed: 6),
      ])
      #expect(codes == "141\n")
    }

    @Test func `the mount helper ends with 1 at bad usage and 32 where the mount has failed`()
      throws
    {
      let sandbox = try Sandbox()
      let helper = sandbox.path("mount.httpfs")
      try FileManager.default.createSymbolicLink(
        atPath: helper, withDestinationPath: try Products.httpfs)
      #expect(try run([helper]).ending == .exited(1))
      let list = try sandbox.write("this is no URL\n", to: "bad.txt")
      let arguments = [helper, list, try sandbox.makeDirectory("mnt")]
      let options = ["-o", "cache-dir=\(sandbox.path("cache"))"]
      #expect(try run(arguments + options).ending == .exited(32))
    }

    @Test func `a damaged cache makes cache verify end with 1`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("a.bin", length: 300_000, seed: 7)])
      _ = try mount.sha256("a.bin")
      #expect(try mount.unmount() == .exited(0))
      let verify = [try Products.httpfs, "cache", "verify", "--cache-dir", mount.cacheDirectory]
      #expect(try run(verify).ending == .exited(0))
      try shell(
        """
        data=$(find \(quoted(mount.cacheDirectory)) -name 'data-*' -size +100k)
        printf x | dd of="$data" bs=1 seek=77777 conv=notrunc status=none
        """)
      #expect(try run(verify).ending == .exited(1))
    }
  }
}
