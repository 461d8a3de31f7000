import ArgumentParser
import HTTPTransferCore

/// A number of bytes on the command line: `1048576`, `512M`, `20G`; the units are powers of 1024.
struct ByteSize: ExpressibleByArgument {
  let byteCount: Int64

  init?(argument: String) {
    guard let count = HTTPTransferCore.byteCount(ofText: argument), count > 0 else { return nil }
    byteCount = count
  }
}
