import Testing

/// A cache without room: the bytes that memory holds instead are right, and are fetched once.
extension RealMounts {
  @Suite struct FullCaches {
    private static let diskByteCount: Int64 = 6 << 20

    /// Fills the rest of the disk.
    private func fill(_ disk: TinyDisk) throws {
      _ = try run(["bash", "-c", "cat /dev/zero > \(quoted(disk.path + "/ballast")); true"])
    }

    @Test(.timeLimit(.minutes(2)))
    func `a file that is read again and again is right each time`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let disk = try sandbox.tinyDisk(byteCount: Self.diskByteCount)
      let file = RemoteTestFile(name: "c.bin", seed: 801, byteCount: (1 << 20) + (400 << 10))
      let mount = try DiskRows.mount([file], origin, sandbox, cache: "\(disk.path)/cache")
      // Read the tail first, as many programs do: the cache file then has its full length, and is
      // sparse.
      let tail = try HeldFile(mount.path(file.name))
      _ = try tail.read(at: file.byteCount - 4096, 4096)
      tail.close()
      try fill(disk)
      // Far more than memory holds.
      let head = 400 << 10
      let reader = try run(
        Python.command(Self.repeatedReader) + [mount.path(file.name), "\(head)", "120"],
        within: .seconds(100))
      #expect(reader.succeeded, "\(reader.error)")
      let right = Digest.ofContent(seed: file.seed, offset: 0, byteCount: Int64(head))
      #expect(reader.output.split(separator: "\n") == ["120 \(right)"], "\(reader.output)")
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(.timeLimit(.minutes(2)))
    func `a stream stays near its reader, and is asked for once`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let disk = try sandbox.tinyDisk(byteCount: Self.diskByteCount)
      let file = RemoteTestFile(name: "s.bin", seed: 802, byteCount: 80 << 20)
      let list = try sandbox.write(file.url(origin, query: "ranges=no") + "\n", to: "stream.txt")
      let mount = sandbox.adopt(
        try Mount(
          source: list, mountpoint: try sandbox.makeDirectory("stream"),
          cacheDirectory: "\(disk.path)/cache", options: ["--read-timeout", "20"]))
      try fill(disk)
      // Much slower than the network.
      let reader = try run(
        Python.command(Self.slowReader) + [mount.path(file.name)], within: .seconds(100))
      #expect(reader.succeeded, "\(reader.error)")
      #expect(reader.output.hasPrefix(file.digest))
      // The first request has a few bytes of its own, and sockets hold bytes when they are closed.
      #expect(try origin.bodyByteCount(of: file) < file.byteCount + (16 << 20))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(.timeLimit(.minutes(2)))
    func `a piece longer than memory keeps is read, and fetched once`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let disk = try sandbox.tinyDisk(byteCount: Self.diskByteCount)
      let file = RemoteTestFile(name: "p.bin", seed: 803, byteCount: 80 << 20)
      let document = PieceMetalink(
        file: file, pieceByteCount: 40 << 20, urls: [file.url(origin)])
      let source = try sandbox.write(document.text, to: "long.meta4")
      let mount = sandbox.adopt(
        try Mount(
          source: source, mountpoint: try sandbox.makeDirectory("long"),
          cacheDirectory: "\(disk.path)/cache", options: ["--read-timeout", "20"]))
      try fill(disk)
      #expect(try mount.sha256(file.name) == file.digest)
      // Bytes that were read ahead of the next piece may be discarded and fetched again.
      #expect(try origin.bodyByteCount(of: file) < 3 * file.byteCount)
      #expect(try mount.unmount() == .exited(0))
    }

    /// Reads the head of a file repeatedly with direct I/O, and prints how often each content
    /// occurred.
    private static let repeatedReader = """
      import collections, hashlib, mmap, os, sys
      path, count, cycles = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
      buffer, seen = mmap.mmap(-1, 65536), collections.Counter()
      for cycle in range(cycles):
          file, digest, position = os.open(path, os.O_RDONLY | os.O_DIRECT), hashlib.sha256(), 0
          while position < count:
              got = os.preadv(file, [buffer], position)
              digest.update(buffer[:min(got, count - position)])
              position += got
          os.close(file)
          seen[digest.hexdigest()] += 1
      for digest, times in seen.items():
          print(times, digest)
      """

    private static let slowReader = """
      import hashlib, sys, time
      digest = hashlib.sha256()
      with open(sys.argv[1], "rb", buffering=0) as file:
          while piece := file.read(131072):
              digest.update(piece)
              time.sleep(0.002)
      print(digest.hexdigest())
      """
  }
}
