import Foundation
import Glibc
import Testing

/// The configuration file: `$XDG_CONFIG_HOME/httpfs/config.toml`.
extension RealMounts {
  @Suite struct ConfigurationFiles {
    /// Writes the configuration file to the place that httpfs reads.
    ///
    /// - Returns: the environment that selects it.
    private func configure(
      _ sandbox: Sandbox, _ text: String, mode: mode_t = 0o600
    ) throws -> [String: String] {
      _ = try sandbox.makeDirectory("config/httpfs")
      let path = try sandbox.write(text, to: "config/httpfs/config.toml")
      try #require(chmod(path, mode) == 0)
      return ["XDG_CONFIG_HOME": sandbox.path("config"), "HOME": sandbox.path("home")]
    }

    /// The source that the table of mounts shows for a mount of `arguments`.
    private func mountedName(
      _ sandbox: Sandbox, _ environment: [String: String], _ arguments: [String],
      at mountpoint: String
    ) throws -> String? {
      try output(
        of: [try Products.httpfs, "mount", "--daemon"] + arguments, environment: environment,
        within: .seconds(20))
      let name = MountTable.httpfs(at: mountpoint)?.source
      try output(
        of: [try Products.httpfs, "unmount", mountpoint], environment: environment,
        within: .seconds(20))
      return name
    }

    @Test func `a named mount has its source, its place and its options from its section`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mountpoint = try sandbox.makeDirectory("home/data")
      let environment = try configure(
        sandbox,
        """
        [mount]
        cache-dir = "cache"
        noexec = true
        umask = "027"

        [mounts.data]
        source = "lists/data.urls"
        mountpoint = "~/data"
        umask = 0o077
        """)
      _ = try sandbox.makeDirectory("config/httpfs/lists")
      try sandbox.write(
        origin.url("c.bin", length: 100_000, seed: 301) + "\n",
        to: "config/httpfs/lists/data.urls")
      try output(
        of: [try Products.httpfs, "mount", "--daemon", "@data"], environment: environment,
        within: .seconds(20))
      defer { _ = try? run(["fusermount3", "-u", "-z", mountpoint]) }
      let entry = try #require(MountTable.httpfs(at: mountpoint))
      #expect(entry.options.contains("noexec"))
      let line = try output(of: ["sha256sum", "\(mountpoint)/c.bin"], within: .seconds(20))
      #expect(line.prefix(64) == Digest.ofContent(seed: 301, byteCount: 100_000))
      // Relative to the file, like the list.
      #expect(access(sandbox.path("config/httpfs/cache/v1"), F_OK) == 0)
      #expect(
        try output(of: ["stat", "--format=%a", "\(mountpoint)/c.bin"]) == "400\n",
        "the section's key takes the place of [mount]'s")
      try output(of: [try Products.httpfs, "unmount", mountpoint], within: .seconds(20))
    }

    @Test func `the command line wins over the section, and that over the defaults`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("c.bin", length: 1000, seed: 302)
      let mountpoint = try sandbox.makeDirectory("mnt")
      let environment = try configure(
        sandbox,
        """
        [mount]
        fsname = "of-all"
        cache-dir = "\(sandbox.path("cache"))"
        [mounts.one]
        source = "\(url)"
        mountpoint = "\(mountpoint)"
        fsname = "of-one"
        """)
      func name(_ arguments: [String]) throws -> String? {
        try mountedName(sandbox, environment, arguments, at: mountpoint)
      }
      #expect(try name([url, mountpoint]) == "of-all")
      #expect(try name(["@one"]) == "of-one")
      #expect(try name(["@one", "--fsname", "mine"]) == "mine")
      #expect(try name(["--fsname=mine", "--", "@one", mountpoint]) == "mine")
      #expect(
        try name(["--no-config", "--cache-dir", sandbox.path("other"), url, mountpoint])
          == String(url.prefix { $0 != "?" })
      )
      let other = try sandbox.write("[mount]\nfsname = \"named\"\n", to: "other.toml")
      #expect(
        try name(
          ["--config", other, "--cache-dir", sandbox.path("other"), url, mountpoint]) == "named")
    }

    @Test func `two named mounts have caches of their own`() throws {
      let sandbox = try Sandbox()
      let environment = try configure(sandbox, "[mounts.a]\nsource = \"http://127.0.0.1:9/a\"\n")
      // As root, the default is that of the service template.
      let cache =
        Host.isRoot ? "/var/cache/httpfs/a" : "\(sandbox.path("home"))/.cache/httpfs/mounts/a"
      let shown = try output(
        of: [try Products.httpfs, "doctor", "--show-config"],
        environment: environment.merging(["XDG_CACHE_HOME": ""]) { $1 })
      #expect(shown.contains("--cache-dir=\(cache) "), "\(shown)")
    }

    @Test(arguments: [
      ("[mount]\nconections = 4\n", 2, "unknown key 'conections'; did you mean 'connections'?"),
      ("[mount]\nzzzzzzzz = 4\n", 2, "keys are the long options of 'httpfs mount'"),
      ("[mount]\nconnections = \"many\"\n", 2, "'many' is invalid for '--connections"),
      ("[mount]\ntree = true\nconnections = 65\n", 3, "--connections must be from 1 to 64"),
      ("[mount]\ntree = \"yes\"\n", 2, "'tree' is true or false"),
      ("[mount]\nuser-agent = true\n", 2, "'user-agent' takes a value"),
      ("[mount]\nconnections = [1]\n", 2, "takes one value"),
      ("[mount]\numask = 99\n", 2, "'99' is invalid for '--umask"),
      ("[mount]\nlog-level = \"loud\"\n", 2, "'loud' is invalid for '--log-level"),
      ("[mount]\n\ntree = tru\n", 3, "no TOML"),
      ("\n[download]\n", 2, "unknown section 'download'"),
    ])
    func `what is wrong is told with file and line, before anything is mounted`(
      text: String, line: Int, message: String
    ) throws {
      let sandbox = try Sandbox()
      let environment = try configure(sandbox, text)
      let mountpoint = try sandbox.makeDirectory("mnt")
      let result = try run(
        [try Products.httpfs, "mount", "--cache-dir", sandbox.path("cache")]
          + ["http://127.0.0.1:9/a", mountpoint], environment: environment, within: .seconds(20))
      #expect(result.ending == .exited(64))
      let place = "httpfs: \(sandbox.path("config/httpfs/config.toml")):\(line): "
      #expect(result.error.hasPrefix(place), "\(result.error)")
      #expect(result.error.contains(message), "\(result.error)")
      #expect(result.error.split(separator: "\n").count == 1, "\(result.error)")
      #expect(MountTable.httpfs(at: mountpoint) == nil)
      // Help must be available nevertheless.
      let help = try run([try Products.httpfs, "mount", "--help"], environment: environment)
      #expect(help.succeeded && help.output.contains("--config"))
    }

    @Test func `a mount that no file names is an error that says where it was looked for`() throws {
      let sandbox = try Sandbox()
      let mountpoint = try sandbox.makeDirectory("mnt")
      let environment = try configure(sandbox, "[mounts.isos]\nsource = \"x\"\n")
      func complaint(_ arguments: [String], _ environment: [String: String]) throws -> String {
        let result = try run(
          [try Products.httpfs, "mount"] + arguments, environment: environment,
          within: .seconds(20))
        #expect(result.ending == .exited(64))
        return result.error
      }
      #expect(
        try complaint(["@other", mountpoint], environment).contains(
          "there is no section [mounts.other]; it has isos"))
      #expect(try complaint(["@isos"], environment).contains("[mounts.isos] has no mountpoint"))
      let nowhere = ["XDG_CONFIG_HOME": sandbox.path("empty")]
      if access("/etc/httpfs/config.toml", F_OK) != 0 {
        #expect(
          try complaint(["@isos", mountpoint], nowhere).contains(
            sandbox.path("empty/httpfs/config.toml")))
      }
      #expect(try complaint(["--no-config", "@isos"], environment).contains("--no-config"))
      #expect(
        try complaint(["--config", sandbox.path("none.toml"), "@isos"], environment).contains(
          "cannot read the configuration file '\(sandbox.path("none.toml"))'"))
    }

    @Test(arguments: [
      "header = \"X-Token: abc123\"", "header = [\"Accept: */*\", \"X-Token: abc123\"]",
      "proxy = \"http://u:abc123@127.0.0.1:1\"",
    ])
    func `a secret that others may read is refused`(setting: String) throws {
      let sandbox = try Sandbox()
      for mode: mode_t in [0o644, 0o640, 0o604] {
        let environment = try configure(sandbox, "[mount]\n\(setting)\n", mode: mode)
        let result = try run(
          [try Products.httpfs, "mount", "http://127.0.0.1:9/a", sandbox.path("none")],
          environment: environment, within: .seconds(20))
        #expect(result.ending == .exited(64))
        #expect(result.error.contains("config.toml:2: ") && result.error.contains("chmod 600"))
        #expect(!result.error.contains("abc123"))
      }
      // With a private file, the command continues to the missing mount point.
      let environment = try configure(sandbox, "[mount]\n\(setting)\n")
      let result = try run(
        [try Products.httpfs, "mount", "--cache-dir", sandbox.path("cache")]
          + ["http://127.0.0.1:9/a", sandbox.path("none")], environment: environment,
        within: .seconds(20))
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("mount point"), "\(result.error)")
      let shown = try output(
        of: [try Products.httpfs, "doctor", "--show-config"], environment: environment)
      #expect(shown.contains("***") && !shown.contains("abc123"))
    }

    @Test(.enabled(if: Host.isRoot, "needs root, to give a file away"))
    func `a file of another user, or that all may change, is not followed`() throws {
      let sandbox = try Sandbox()
      let environment = try configure(sandbox, "[get]\njobs = 8\n", mode: 0o646)
      let path = sandbox.path("config/httpfs/config.toml")
      let arguments = [try Products.httpfs, "get", "-o", sandbox.path("f"), "http://127.0.0.1:9/a"]
      let changeable = try run(arguments, environment: environment, within: .seconds(20))
      #expect(changeable.ending == .exited(64) && changeable.error.contains("chmod o-w"))
      try #require(chmod(path, 0o600) == 0)
      try output(of: ["chown", "nobody", path])
      let foreign = try run(arguments, environment: environment, within: .seconds(20))
      #expect(foreign.ending == .exited(64) && foreign.error.contains("belongs to another user"))
      let named = try run(
        [try Products.httpfs, "get", "--config", path] + arguments.dropFirst(2)
          + ["--retries", "0"], within: .seconds(20))
      #expect(named.ending == .exited(6), "\(named.error)")
    }

    @Test func `get has defaults of its own`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let environment = try configure(
        sandbox, "[get]\noutput = \"downloads/\"\nquiet = true\n[mount]\nconnections = 1\n")
      let result = try run(
        [try Products.httpfs, "get", "-x2", origin.url("g.bin", length: 70_000, seed: 303)],
        environment: environment, within: .seconds(30))
      #expect(result.succeeded && result.output.isEmpty, "\(result.error)")
      let line = try output(of: ["sha256sum", sandbox.path("config/httpfs/downloads/g.bin")])
      #expect(line.prefix(64) == Digest.ofContent(seed: 303, byteCount: 70_000))
    }

    @Test func `mount(8) mounts a section by its name`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mountpoint = try sandbox.makeDirectory("mnt")
      let helper = sandbox.path("mount.fuse.httpfs")
      try FileManager.default.createSymbolicLink(
        atPath: helper, withDestinationPath: try Products.httpfs)
      defer { _ = try? run(["fusermount3", "-u", "-z", mountpoint]) }
      let environment = try configure(
        sandbox,
        """
        [mounts.named]
        source = "\(origin.url("m.bin", length: 5000, seed: 304))"
        cache-dir = "\(sandbox.path("cache"))"
        gid = 12345
        """)
      let result = try run(
        [helper, "@named", mountpoint, "-o", "rw,noatime,uid=23456"], environment: environment,
        within: .seconds(20))
      #expect(result.ending == .exited(0), "\(result.error)")
      #expect(MountTable.httpfs(at: mountpoint)?.source == "@named")
      // The file's cache applies, not the helper's default for each mount point.
      #expect(access(sandbox.path("cache"), F_OK) == 0)
      let owner = try output(of: ["stat", "--format=%u %g", "\(mountpoint)/m.bin"])
      #expect(owner == "23456 12345\n")
      try output(of: ["fusermount3", "-u", mountpoint])
    }
  }
}
