import ArgumentParser

/// Permissions to remove, in octal: `077`, or `0o77` as in TOML.
struct PermissionMask: ExpressibleByArgument, CustomStringConvertible {
  let bits: UInt32

  static let none = PermissionMask(bits: 0)

  init(bits: UInt32) { self.bits = bits }

  init?(argument: String) {
    let digits = argument.hasPrefix("0o") ? argument.dropFirst(2) : argument[...]
    // Int's own parser would accept a sign.
    guard digits.allSatisfy({ ("0"..."7").contains($0) }), let bits = UInt32(digits, radix: 8),
      bits <= 0o777
    else { return nil }
    self.bits = bits
  }

  var description: String {
    let digits = String(bits, radix: 8)
    return String(repeating: "0", count: max(0, 3 - digits.count)) + digits
  }

  var defaultValueDescription: String { description }
}
