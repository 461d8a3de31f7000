import Foundation
import Testing

/// The information that a mount offers beside file contents: `.metrics` and extended attributes.
extension RealMounts {
  @Suite struct Attributes {
    @Test func `.metrics can be read by Prometheus' own parser, and agrees with .status.json`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let list = try sandbox.write(
        """
        \(origin.url("read.bin", length: 300_000, seed: 1))
          out=odd "name" \\ with spaces.bin
        \(origin.url("unread.bin", length: 1000, seed: 2))

        """, to: "urls.txt")
      let mount = try sandbox.mount(source: list)
      try output(of: ["sha256sum", mount.path("odd \"name\" \\ with spaces.bin")])
      let script = """
        import json, sys
        from prometheus_client.parser import text_string_to_metric_families
        text = open(sys.argv[1] + "/.metrics").read()
        samples = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples[sample.name, sample.labels.get("file"), sample.labels.get("state")] = sample.value
        status = json.load(open(sys.argv[1] + "/.status.json"))
        totals = status["totals"]
        assert samples["httpfs_cached_bytes", None, None] == totals["cached_bytes"] == 300000, samples
        assert samples["httpfs_requests_total", None, None] == totals["requests"] > 0
        assert samples["httpfs_files", None, "complete"] == 1 == samples["httpfs_files", None, "unknown"]
        files = {name for (_, name, _) in samples if name}
        assert files == {'odd "name" \\\\ with spaces.bin'}, files
        for file in status["files"]:
            if file["state"] != "unknown":
                assert samples["httpfs_file_fetched_bytes_total", file["name"], None] == file["fetched_bytes"]
        print("agreed")
        """
      #expect(try output(of: Python.command(script) + [mount.mountpoint]) == "agreed\n")
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `extended attributes say where a file comes from and how much of it is cached`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 100_000, seed: 3)
      let secret = url.replacingOccurrences(of: "http://", with: "http://user:canary@")
      let mount = try sandbox.mount(urls: [secret])
      let script = """
        import errno, os, sys
        path = sys.argv[1]
        def attributes():
            return {name: os.getxattr(path, name).decode() for name in os.listxattr(path)}
        before = attributes()
        open(path, "rb").read()
        after = attributes()
        assert before["user.httpfs.state"] in ("idle", "downloading") and after["user.httpfs.state"] == "complete", (before, after)
        assert int(before["user.httpfs.cached_bytes"]) < 100000 == int(after["user.httpfs.cached_bytes"])
        assert after["user.httpfs.etag"].startswith('"'), after
        assert after["user.httpfs.url"].startswith("http://127.0.0.1:"), after
        assert "canary" not in str(after) and "seed" not in str(after), after
        for name, expected in (("user.httpfs.none", errno.ENODATA), ("system.posix_acl_access", errno.EOPNOTSUPP),
                               ("user.other", errno.EOPNOTSUPP)):
            try: os.getxattr(path, name); raise SystemExit(name)
            except OSError as error: assert error.errno == expected, (name, error)
        try: os.setxattr(path, "user.httpfs.url", b"x"); raise SystemExit("set")
        except OSError as error: assert error.errno in (errno.EROFS, errno.EOPNOTSUPP), error
        assert os.listxattr(os.path.dirname(path)) == []
        print("as they should be")
        """
      #expect(
        try output(of: Python.command(script) + [mount.path("a.bin")]) == "as they should be\n")
      // Read them as users do, and as ls does without a request for each file.
      let shown = try output(of: ["getfattr", "-d", mount.path("a.bin")])
      #expect(shown.contains("user.httpfs.cached_bytes=\"100000\""), "\(shown)")
      #expect(try run(["ls", "-l", mount.mountpoint]).succeeded)
      #expect(try mount.unmount() == .exited(0))
    }
  }
}
