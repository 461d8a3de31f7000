import Testing

/// Three files that sessions of `httpfs get` download.
enum SessionFiles {
  static let length: Int64 = 8 << 20
  static let names = ["a.bin", "b.bin", "c.bin"]

  static func urls(_ origin: OriginServer) -> [String] {
    names.enumerated().map {
      origin.url($1, length: length, seed: UInt64($0), query: "token=canary")
    }
  }

  static func expectAll(_ work: TransferWorkspace, below directory: String = "") throws {
    for (seed, name) in names.enumerated() {
      #expect(
        try work.sha256(directory + name)
          == Digest.ofContent(seed: UInt64(seed), byteCount: length), "\(name)")
    }
  }
}
