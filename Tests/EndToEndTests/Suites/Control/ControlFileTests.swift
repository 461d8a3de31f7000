import Foundation
import Testing

/// `.control` as a file.
extension RealMounts {
  @Suite struct ControlFile {
    private func mount(_ sandbox: Sandbox, _ origin: OriginServer) throws -> Mount {
      try sandbox.mount(urls: [
        origin.url("a.bin", length: 100_000, seed: 1),
        origin.url("b.bin", length: 100_000, seed: 2),
        origin.url("x", length: 10_000, seed: 3) + "\n dir=some dir\n out=c d.bin",
      ])
    }

    @Test(arguments: [
      "echo 'pause a.bin' > .control", "echo 'pause a.bin' >> .control",
      "printf 'pause a.bin\\n' > .control", "printf 'pause a.bin' >> .control",
      "echo 'pause a.bin' | tee .control", "echo 'pause a.bin' | tee -a .control",
      "echo 'pause a.bin' | dd of=.control",
      "truncate -s 0 .control; echo 'pause a.bin' > .control",
      "python3 -c \"f = open('.control', 'w'); f.write('pause a.bin\\n'); f.close()\"",
      "python3 -c \"f = open('.control', 'a'); print('pause a.bin', file=f); f.close()\"",
      "python3 -c \"f = open('.control', 'r+'); f.write('pause a.bin\\n'); f.close()\"",
      "set -o noclobber; echo 'pause a.bin' >| .control",
      "{ echo 'pause *'; echo 'resume b.bin \"some dir/c d.bin\"'; } > .control",
    ])
    func `whatever writes can write commands`(command: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(sandbox, origin)
      try shell("cd \(quoted(mount.mountpoint)) && \(command)", within: .seconds(20))
      #expect(try mount.status().files.map(\.state) == ["paused", "unknown", "unknown"])
      #expect(try origin.requests().isEmpty)
    }

    @Test func `it is hidden, its owner's alone, and explains itself`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(sandbox, origin)
      let path = mount.path(".control")
      #expect(try output(of: ["stat", "-c", "%a %F %U", path]).hasPrefix("600 regular"))
      #expect(try output(of: ["ls", "-a", mount.mountpoint]).contains(".control") == false)
      let help = try output(of: ["cat", path])
      for verb in ["prefetch", "pause", "evict", "rate-limit"] { #expect(help.contains(verb)) }
      for command in [
        "chmod 666 .control", "rm .control", "mv .control x", "chown nobody .control",
      ] {
        let result = try run(["bash", "-c", "cd \(quoted(mount.mountpoint)) && \(command)"])
        #expect(!result.succeeded, "\(command)")
      }
      #expect(try output(of: ["stat", "-c", "%a", path]) == "600\n")
      // No other file has become writable.
      for name in [".status", ".status.json", "a.bin"] {
        let result = try run(["bash", "-c", ": > \(quoted(mount.path(name)))"])
        #expect(result.error.contains("Read-only file system"), "\(result.error)")
      }
    }

    @Test func `opening a file to cut it is refused, also without writing`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(sandbox, origin)
      let script = "import os, sys; os.open(sys.argv[1], os.O_RDONLY | os.O_TRUNC)"
      let result = try run(Python.command(script) + [mount.path("a.bin")])
      #expect(result.error.contains("Read-only file system"), "\(result.error)")
      #expect(try output(of: ["stat", "-c", "%s", mount.path("a.bin")]) == "100000\n")
    }

    @Test(
      arguments: [
        ("nonsense\n", "EINVAL"), ("pause", nil), ("", nil), ("\n\n", nil), ("evict\n", "EINVAL"),
        ("pause nosuch.bin\n", "ENOENT"), ("pause *.iso\n", "ENOENT"),
        ("evict some\\ dir\n", "ENOENT"),
        ("connections 0\n", "EINVAL"), ("connections 3\n", nil), ("connections auto\n", nil),
        ("rate-limit 1X\n", "EINVAL"), ("rate-limit 10M\n", nil), ("pause a.bin\0\n", "EINVAL"),
        ("pause a.bin\u{7}\n", "EINVAL"), ("pause \"a.bin\n", "EINVAL"), ("pause some*\n", nil),
        ("pause a.bin b.bin nosuch\n", "ENOENT"), ("pause\nresume nosuch\n", "ENOENT"),
        ("pause\nnonsense\n", "EINVAL"), ("evict *\npause\nnonsense\n", "EINVAL"),
        ("pin a.bin\nevict a.bin\n", "EPERM"), ("prefetch a.bin\nevict a.bin\n", "EBUSY"),
        (String(repeating: "\n", count: 4097), "EMSGSIZE"),
        (String(repeating: "\n", count: 4096), nil),
      ] as [(String, String?)])
    func `a command is taken, or refused for its reason and changes nothing`(
      text: String, error: String?
    ) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(sandbox, origin)
      _ = try mount.sha256("b.bin")
      try mount.waitUntilClosed()
      #expect(try mount.control(text) == error)
      guard error != nil else { return }
      let files = try mount.status().files
      #expect(files.map(\.state) == ["unknown", "complete", "unknown"])
      #expect(files.allSatisfy { !$0.pinned })
      #expect(mount.process.standardError.contains("command refused"))
    }

    @Test func `writes over one handle are batches of their own, until a line is left unfinished`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(sandbox, origin)
      let batches = ["pause a.bin\n", "nonsense\n", "pause b.bin", "* resume a.bin\n", "resume\n"]
      #expect(
        try ControlWrite().write(batches.map { Array($0.utf8) }, to: mount)
          == [nil, "EINVAL", nil, "EINVAL", "EINVAL"])
      #expect(try mount.status().files.map(\.state) == ["paused", "paused", "unknown"])
      let tooLong = Array(repeating: UInt8(ascii: " "), count: 5000)
      #expect(
        try ControlWrite().write([tooLong, Array("resume\n".utf8)], to: mount)
          == ["EMSGSIZE", "EMSGSIZE"])
      #expect(try mount.status().files.map(\.state) == ["paused", "paused", "unknown"])
    }
  }
}
