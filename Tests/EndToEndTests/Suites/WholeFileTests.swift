import Foundation
import Testing

/// Whole files arrive intact, and only once.
extension RealMounts {
  @Suite struct WholeFiles {
    @Test func `1 GiB is right, travels once, and never again`() throws {
      let big = try BigFile.make()
      let sandbox = try Sandbox()
      let nginx = try sandbox.nginx(root: big.directory)
      let first = try sandbox.mount(urls: [nginx.url(BigFile.name)])
      #expect(first.announcedFileCount == 1)
      #expect(try first.sha256(BigFile.name) == big.sha256)
      let peakResident = try first.peakResidentByteCount
      #expect(try first.sha256(BigFile.name) == big.sha256)
      try first.unmount()
      let requests = try nginx.takeRequests()
      #expect(requests.distinctBodyByteCount == BigFile.byteCount)
      #expect(
        requests.repeatedByteCount <= BigFile.byteCount / 100 + requests.maximumVainByteCount,
        "\(requests.map { "\($0.range ?? "-") \($0.bodyByteCount) \($0.start)-\($0.end)" })")
      // Without a throttle, more requests would only cost time.
      #expect(requests.count <= 160, "\(requests.count) requests")
      // Memory stays bounded.
      #expect(peakResident <= 64 << 20, "peak resident \(peakResident >> 20) MiB")

      let second = try sandbox.mount(urls: [nginx.url(BigFile.name)])
      #expect(try second.sha256(BigFile.name) == big.sha256)
      #expect(try second.status(of: BigFile.name).state == "complete")
      #expect(try second.status(of: BigFile.name).fetchedByteCount == 0)
      try second.unmount()
      #expect(try nginx.takeRequests().bodyByteCount == 0)
    }

    @Test func `1,000 files of 64 KiB are right, travel once, and never again`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("www")
      let names = (0..<1000).map { "file\($0).bin" }
      for (index, name) in names.enumerated() {
        try TestContent.write(to: "\(root)/\(name)", seed: UInt64(index), byteCount: 64 << 10)
      }
      let expected = try shell("cd \(quoted(root)) && sha256sum file*.bin")
      let nginx = try sandbox.nginx(root: root)
      let first = try sandbox.mount(urls: names.map(nginx.url))
      #expect(first.announcedFileCount == 1000)
      let command = "cd \(quoted(first.mountpoint)) && sha256sum file*.bin"
      #expect(try shell(command, within: .seconds(120)) == expected)
      #expect(try shell(command, within: .seconds(120)) == expected)
      try first.unmount()
      let requests = try nginx.takeRequests()
      #expect(requests.distinctBodyByteCount == 1000 * 65536)
      #expect(
        requests.repeatedByteCount <= 10 * 65536 + requests.maximumVainByteCount)

      let second = try sandbox.mount(urls: names.map(nginx.url))
      let again = "cd \(quoted(second.mountpoint)) && sha256sum file*.bin"
      #expect(try shell(again, within: .seconds(120)) == expected)
      try second.unmount()
      #expect(try nginx.takeRequests().bodyByteCount == 0)
    }

    @Test func `nothing is fetched before it is asked for`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("a.bin", length: 1 << 20, seed: 1)])
      #expect(try origin.requests().isEmpty)
      // The names come from the list alone.
      #expect(try output(of: ["ls", mount.mountpoint]) == "a.bin\n")
      _ = try mount.status()
      #expect(try origin.requests().isEmpty)
      // To learn the length costs one request and at most the first few bytes.
      #expect(try output(of: ["stat", "-c", "%s %a", mount.path("a.bin")]) == "1048576 444\n")
      let requests = try origin.requests()
      #expect(requests.count == 1)
      #expect(requests.bodyByteCount <= 64 << 10)
    }

    @Test func `an empty file and a file of one byte read as they are`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("www")
      try sandbox.write("", to: "www/empty")
      try sandbox.write("x", to: "www/one")
      let nginx = try sandbox.nginx(root: root)
      let mount = try sandbox.mount(urls: [nginx.url("empty"), nginx.url("one")])
      #expect(try output(of: ["cat", mount.path("empty")]) == "")
      #expect(try output(of: ["cat", mount.path("one")]) == "x")
      #expect(try output(of: ["stat", "-c", "%s", mount.path("empty")]) == "0\n")
    }

    @Test func `one URL mounts without a list`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(source: origin.url("solo.bin", length: 100_000, seed: 4))
      #expect(try mount.sha256("solo.bin") == Digest.ofContent(seed: 4, byteCount: 100_000))
    }
  }
}
