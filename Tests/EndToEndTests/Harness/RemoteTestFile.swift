import Foundation
import SeededRandom

/// A remote file of a test: the content that the Origin serves and that a reader must see.
struct RemoteTestFile: Sendable {
  let name: String
  let seed: UInt64
  let byteCount: Int64

  /// Creates files of random lengths and contents.
  ///
  /// - Parameters:
  ///   - count: how many.
  ///   - lengths: the bounds of their lengths in bytes.
  ///   - random: the source of the random numbers.
  /// - Returns: the files, named `f0.bin` and so on.
  static func random(
    _ count: Int, lengths: ClosedRange<Int64>, using random: inout SeededGenerator
  ) -> [RemoteTestFile] {
    (0..<count).map { index in
      RemoteTestFile(
        name: "f\(index).bin", seed: random.next() >> 1,
        byteCount: Int64.random(in: lengths, using: &random))
    }
  }

  /// The SHA-256 of the whole file.
  var digest: String { Digest.ofContent(seed: seed, byteCount: byteCount) }

  func url(_ origin: OriginServer, query: String = "") -> String {
    origin.url(name, length: byteCount, seed: seed, query: query)
  }
}

extension OriginServer {
  /// The body bytes of one file that were sent so far.
  func bodyByteCount(of file: RemoteTestFile) throws -> Int64 {
    try requests().of(path: "/data/\(file.name)").bodyByteCount
  }
}
