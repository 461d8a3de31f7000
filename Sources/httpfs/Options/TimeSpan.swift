import ArgumentParser

/// A time on the command line: `5`, `1.5s`, `500ms`, `2m`, `1h` or `1d`; without a unit, seconds.
struct TimeSpan: ExpressibleByArgument, CustomStringConvertible {
  let seconds: Double

  private static let units: [(suffix: String, seconds: Double)] = [
    ("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86_400),
  ]

  init(seconds: Double) { self.seconds = seconds }

  init?(argument: String) {
    let unit = Self.units.first { argument.hasSuffix($0.suffix) }
    let digits = argument.dropLast(unit?.suffix.count ?? 0)
    // Double's own parser would accept signs, exponents, "inf" and hexadecimal digits.
    guard digits.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." }),
      let number = Double(digits), number * (unit?.seconds ?? 1) <= 1e9
    else { return nil }
    seconds = number * (unit?.seconds ?? 1)
  }

  var duration: Duration { .seconds(seconds) }

  var description: String {
    seconds == seconds.rounded() ? "\(Int(seconds))s" : "\(seconds)s"
  }

  var defaultValueDescription: String { description }
}
