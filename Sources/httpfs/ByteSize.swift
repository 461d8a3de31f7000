import ArgumentParser
import HTTPTransferCore

/// A number of bytes on the command line: `1048576`, `512M`, `20G`; the units are powers of 1024.
struct ByteSize: ExpressibleByArgument {
  let byteCount: Int64

  init?(argument: String) {
    var digits = Substring(argument)
    var factor: Int64 = 1
    let units: [Character] = ["K", "M", "G", "T"]
    if let last = digits.last?.uppercased().first, let power = units.firstIndex(of: last) {
      digits.removeLast()
      factor = 1 << (10 * Int64(power + 1))
    }
    guard let number = Int64(digits: digits) else { return nil }
    let (product, overflow) = number.multipliedReportingOverflow(by: factor)
    guard !overflow, product > 0 else { return nil }
    byteCount = product
  }
}
