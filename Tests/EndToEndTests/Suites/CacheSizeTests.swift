import Foundation
import Testing

/// The bound that `--cache-size` sets.
extension RealMounts {
  @Suite struct CacheSize {
    @Test func `what was used least recently is evicted, said so, and fetched again`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 8 << 20
      let names = ["a.bin", "b.bin", "c.bin"]
      let mount = try sandbox.mount(
        urls: names.enumerated().map { index, name in
          origin.url(name, length: length, seed: UInt64(index))
        }, options: ["--cache-size", "20M"])
      for (index, name) in names.enumerated() {
        let digest = Digest.ofContent(seed: UInt64(index), byteCount: length)
        #expect(try mount.sha256(name) == digest)
        // The order of use is that of whole seconds apart, on any file system.
        pause(for: .milliseconds(1100))
      }
      #expect(try mount.waitForStatus(of: "a.bin") { $0.cachedByteCount == 0 })
      for name in names.dropFirst() {
        #expect(try mount.status(of: name).cachedByteCount == length)
      }
      // Nothing is wrong with what was evicted: an offset that no page cache holds is fetched.
      try mount.unmount()
      let again = try sandbox.mount(
        urls: [origin.url("a.bin", length: length, seed: 0)], options: ["--cache-size", "20M"])
      #expect(try again.sha256("a.bin") == Digest.ofContent(seed: 0, byteCount: length))
      #expect(try again.status(of: "a.bin").fetchedByteCount == length)
    }
  }
}
