import Testing

/// The files are read-only for every user.
extension RealMounts {
  @Suite struct ReadOnly {
    @Test(arguments: [
      "echo x > a.bin", "echo x >> a.bin", "echo x > new.bin", "touch new.bin", "rm a.bin",
      "mv a.bin b.bin", "mkdir d", "ln -s a.bin l", "truncate -s 0 a.bin", "chmod 777 a.bin",
    ])
    func `a change is refused and changes nothing`(command: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("a.bin", length: 10_000, seed: 161)])
      let result = try run(
        ["bash", "-c", "cd \(quoted(mount.mountpoint)) && \(command)"], within: .seconds(10))
      #expect(!result.succeeded)
      #expect(
        result.error.contains("Read-only file system") || result.error.contains("not permitted")
          || result.error.contains("Permission denied"), "\(result.error)")
      #expect(try output(of: ["ls", mount.mountpoint]) == "a.bin\n")
      #expect(try mount.sha256("a.bin") == Digest.ofContent(seed: 161, byteCount: 10_000))
    }

    @Test func `files and directories of the list have read-only modes`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [
        origin.url("a.bin", length: 10, seed: 162) + "\n dir=deep/er\n out=x.bin"
      ])
      #expect(
        try output(of: ["stat", "-c", "%a %F", mount.path("deep/er"), mount.path("deep/er/x.bin")])
          == "555 directory\n444 regular file\n")
      #expect(
        try output(of: ["find", mount.mountpoint, "-type", "f", "-printf", "%P\n"])
          == "deep/er/x.bin\n")
      #expect(try mount.sha256("deep/er/x.bin") == Digest.ofContent(seed: 162, byteCount: 10))
      #expect(try run(["cat", mount.path("deep/no")]).error.contains("No such file"))
    }
  }
}
