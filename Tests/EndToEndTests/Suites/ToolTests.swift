import Testing

/// Ordinary tools cannot distinguish the mount from a local copy.
extension RealMounts {
  @Suite struct Tools {
    /// Creates the files that the tools read.
    private static let preparation = """
      mkdir -p tree/sub
      for number in $(seq 1 40); do seq 1 $((number * 100)) > tree/sub/file$number.txt; done
      head -c 3000000 /dev/urandom > tree/random.bin
      zip -q -r archive.zip tree
      tar cf archive.tar tree
      tar czf archive.tar.gz tree
      seq 1 400000 | sed 's/$/ a line of text/' > text.txt
      head -c 9000001 /dev/urandom > binary.bin
      sqlite3 data.db "create table t(id integer primary key, name text, value real);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000)
        insert into t select i, 'name' || i, i * 0.5 from n; create index t_name on t(name);"
      """

    /// Shell commands to run in the directory of the files; `$OUT` is a scratch directory.
    static let commands = [
      "unzip -l archive.zip | tail -n +2",
      "unzip -p archive.zip tree/sub/file17.txt | sha256sum",
      "unzip -q archive.zip -d $OUT/zip && cd $OUT/zip && find . -type f | sort | xargs sha256sum",
      "unzip -tq archive.zip",
      "tar tvf archive.tar",
      "tar xf archive.tar -C $OUT && cd $OUT && find . -type f | sort | xargs sha256sum",
      "tar xzf archive.tar.gz -O tree/sub/file3.txt",
      "sqlite3 data.db 'select count(*), sum(value), max(name) from t'",
      "sqlite3 data.db \"select * from t where name = 'name31337'\"",
      "sqlite3 data.db 'pragma integrity_check'",
      "file archive.zip archive.tar archive.tar.gz text.txt binary.bin data.db",
      "tail -c 12345 binary.bin | sha256sum",
      "tail -n 5 text.txt",
      "head -c 100000 text.txt | tail -n 2",
      "dd if=binary.bin bs=1000 skip=4321 count=77 status=none | sha256sum",
      "dd if=binary.bin bs=1M iflag=direct status=none | sha256sum",
      "cp binary.bin $OUT/copy && sha256sum < $OUT/copy",
      "cmp binary.bin $REFERENCE/binary.bin && echo same",
      "diff text.txt $REFERENCE/text.txt && echo same",
      "grep -c 7 text.txt",
      "grep -n '123456 a' text.txt",
      "wc text.txt",
      "sort -rn text.txt | head -3",
      "sha256sum archive.zip archive.tar archive.tar.gz text.txt binary.bin data.db",
      "stat -c '%n %s %F' archive.zip archive.tar text.txt binary.bin data.db",
      "find . -maxdepth 1 -name '*.db' -size +100k",
      "gzip -dc archive.tar.gz | sha256sum",
      """
      python3 -c 'import mmap
      with open("binary.bin", "rb") as file, \
      mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
          print(len(view), view[8_000_000:8_000_064].hex(), view.rfind(view[-9:]))'
      """,
      "python3 -m zipfile -l archive.zip | sort",
    ]

    @Test func `the output on the mount is that on the local copy`() throws {
      let sandbox = try Sandbox()
      let reference = try sandbox.makeDirectory("www")
      try shell("cd \(quoted(reference))\n" + Self.preparation)
      let nginx = try sandbox.nginx(root: reference)
      let names = [
        "archive.zip", "archive.tar", "archive.tar.gz", "text.txt", "binary.bin", "data.db",
      ]
      let mount = try sandbox.mount(urls: names.map(nginx.url))

      for (index, command) in Self.commands.enumerated() {
        func result(in directory: String, _ scratch: String) throws -> CommandResult {
          let out = try sandbox.makeDirectory(scratch)
          return try run(
            ["bash", "-c", "cd \(quoted(directory)) && { \(command)\n}"],
            environment: ["OUT": out, "REFERENCE": reference, "LC_ALL": "C", "TZ": "UTC"],
            within: .seconds(60))
        }
        let local = try result(in: reference, "local\(index)")
        let remote = try result(in: mount.mountpoint, "remote\(index)")
        #expect(local.succeeded, "\(command): \(local.error)")
        #expect(remote.ending == local.ending, "\(command): \(remote.error)")
        #expect(remote.output == local.output, "\(command)")
      }
      #expect(try mount.unmount() == .exited(0))
      let served = try names.reduce(Int64(0)) { sum, name in
        sum + (try #require(FileStatus.byteCount(of: "\(reference)/\(name)")))
      }
      let requests = try nginx.takeRequests()
      #expect(
        requests.repeatedByteCount <= served / 100 + 65536 + requests.maximumVainByteCount)
    }

    @Test func `listing an archive reads its directory and not its contents`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("www")
      try shell(
        "cd \(quoted(root)) && head -c 64M /dev/urandom > inside.bin && zip -q -0 a.zip inside.bin")
      let nginx = try sandbox.nginx(root: root)
      let mount = try sandbox.mount(urls: [nginx.url("a.zip")])
      #expect(try output(of: ["unzip", "-l", mount.path("a.zip")]).contains("inside.bin"))
      try mount.unmount()
      let sent = try nginx.takeRequests().bodyByteCount
      #expect(sent <= 1 << 20, "\(sent) bytes")
    }
  }
}
