import HTTPTransfer
import HTTPTransferCore
import SeededRandom

/// One download and its faults, which a seed determines.
struct FaultScript: Sendable, CustomStringConvertible {
  /// The destination of the bytes.
  enum Target: String, CaseIterable {
    case file, memory, stream
  }

  /// Parameters of the Origin, by their names in docs/ORIGIN.md.
  typealias Parameters = [String: String]

  let seed: UInt64
  let length: Int64
  let target: Target
  let connections: Connections
  let range: ByteRange?
  /// Whether a file with other contents already has the name.
  let replacesFile: Bool
  /// The parameters of the resource from the start, including a fault.
  private(set) var parameters: Parameters = [:]
  /// The fault after a redirect; nil if there is no redirect.
  private(set) var parametersBeyondRedirect: Parameters?
  /// A fault that replaces the first one during the download.
  private(set) var later: (parameters: Parameters, after: Duration)?
  /// The time after which the first transfer is cancelled.
  private(set) var cancelAfter: Duration?
  /// The time after which the first transfer is paused, and the duration.
  private(set) var pause: (after: Duration, lasting: Duration)?
  /// The delay of a stream's consumer before some of its chunks.
  private(set) var takerDelay: Duration?
  let streamBufferByteCount: Int

  /// The fault or `none`, under which the tally counts runs.
  var kind: String {
    parameters["fault"] ?? (parameters["etag-flip"] == nil ? "none" : "etag-flip")
  }

  /// The same bytes for every script of a seed.
  var contentSeed: UInt64 { seed &* 2 &+ 1 }

  init(seed: UInt64) {
    var random = SeededGenerator(seed: seed &* 0x1000_0001)
    self.seed = seed
    length = Self.drawLength(&random)
    // Files can be resumed, so they are half of all targets.
    target = Bool.random(using: &random) ? .file : random.pick(Target.allCases)
    let count = Int.random(in: 1...8, using: &random)
    connections = Bool.random(using: &random) ? .adaptive(upTo: count) : .exactly(count)
    if length > 0, random.isTrue(outOf: 10) {
      let lower = Int64.random(in: 0..<length, using: &random)
      range = ByteRange(offset: lower, byteCount: .random(in: 1...length + 1000, using: &random))
    } else {
      range = nil
    }
    replacesFile = random.isTrue(outOf: 5)
    streamBufferByteCount = random.pick([1, 4096, 65_536, 1 << 20])
    takerDelay = random.isTrue(outOf: 4) ? .microseconds(.random(in: 1...800, using: &random)) : nil
    drawServer(&random)
    drawFaults(&random)
    drawVerbs(&random)
  }

  private static func drawLength(_ random: inout SeededGenerator) -> Int64 {
    switch Int.random(in: 0..<20, using: &random) {
    case 0: 0
    case 1: .random(in: 1...10, using: &random)
    case 2: random.pick([4095, 4096, 4097, 65_535, 65_536, 65_537, 1 << 20])
    case 3...7: .random(in: 11...300_000, using: &random)
    default: .random(in: 300_000...(3 << 20), using: &random)
    }
  }

  // MARK: The server

  private mutating func drawServer(_ random: inout SeededGenerator) {
    if random.isTrue(outOf: 2) {
      parameters["validators"] = random.pick(["etag", "weak", "date", "none"])
    }
    switch Int.random(in: 0..<10, using: &random) {
    case 0: parameters["chunked"] = "yes"
    case 1: parameters["close-delimited"] = "yes"
    case 2: parameters["ranges"] = "no"
    default: break
    }
    if isLengthUndeclared, Bool.random(using: &random) { parameters["ranges"] = "yes" }
    // Slow enough that further connections pay.
    if length > 1_000_000, random.isTrue(outOf: 3) {
      parameters["rate"] = String(Int.random(in: 800_000...2_500_000, using: &random))
    }
    if random.isTrue(outOf: 8) {
      parameters["latency"] = String(Int.random(in: 1...15, using: &random))
    }
    if random.isTrue(outOf: 20) { parameters["etag-flip"] = "yes" }
  }

  private var isLengthUndeclared: Bool {
    parameters["chunked"] != nil || parameters["close-delimited"] != nil
  }

  // MARK: Faults

  private mutating func drawFaults(_ random: inout SeededGenerator) {
    if random.isTrue(outOf: 30) { return }
    let first = drawFault(&random)
    parameters.merge(first) { $1 }
    if first["fault"] == "redirect" {
      parametersBeyondRedirect = Bool.random(using: &random) ? drawFault(&random) : [:]
      // One redirect is enough: its target is the same resource under another name.
      if parametersBeyondRedirect?["fault"] == "redirect" { parametersBeyondRedirect = [:] }
    } else if random.isTrue(outOf: 4) {
      var fault = drawFault(&random)
      if fault["fault"] == "redirect" { fault = ["fault": "reset", "fault-count": "1"] }
      later = (fault, .milliseconds(.random(in: 0...30, using: &random)))
    }
  }

  /// The faults that a download can meet; see docs/ORIGIN.md.
  private static let kinds = [
    "ignore-range", "wrong-content-range", "missing-content-range", "earlier-range", "empty-206",
    "multipart", "short-body", "truncate", "truncate", "reset", "reset", "reset", "stall",
    "extra-bytes", "length-and-chunked", "silent-close", "etag-change", "etag-change", "status",
    "status", "status", "redirect", "redirect", "redirect-loop", "html-200", "gzip", "header-bomb",
    "stall-head",
  ]

  private func drawFault(_ random: inout SeededGenerator) -> Parameters {
    var kind = random.pick(Self.kinds)
    // These cannot be noticed: the end of the connection is the end of the body, and without a
    // validator, versions cannot be distinguished.
    let hidden: Set = ["truncate", "short-body", "extra-bytes"]
    if parameters["close-delimited"] != nil, hidden.contains(kind) { kind = "reset" }
    if parameters["validators"] == "none", kind == "etag-change" { kind = "silent-close" }
    var fault = ["fault": kind]
    switch Int.random(in: 0..<6, using: &random) {
    case 0: break
    case 1: fault["fault-count"] = String(Int.random(in: 4...12, using: &random))
    default: fault["fault-count"] = String(Int.random(in: 1...3, using: &random))
    }
    if random.isTrue(outOf: 3) {
      fault["fault-from"] = String(Int.random(in: 1...4, using: &random))
    }
    if Bool.random(using: &random) {
      fault["fault-at"] = String(Int64.random(in: 0...length, using: &random))
    }
    if length > 0, random.isTrue(outOf: 10) {
      let place = Int64.random(in: 0..<length, using: &random)
      fault["fault-range"] = "\(place)-\(place)"
    }
    switch kind {
    case "status":
      fault["status"] = random.pick([
        "304", "400", "401", "403", "404", "408", "410", "412", "416", "425", "429", "500", "501",
        "502", "503", "503", "504",
      ])
      fault["retry-after"] = random.pick([nil, "0", "1"])
    case "redirect":
      fault["redirect-status"] = random.pick(["301", "302", "303", "307", "308"])
    case "stall", "stall-head":
      // Few stalls are long enough that the download must notice them: each of those costs more
      // than a second.
      if random.isTrue(outOf: 5) {
        fault["fault-count"] = "1"
      } else {
        fault["stall-seconds"] = random.pick(["0.01", "0.05"])
      }
    default: break
    }
    return fault
  }

  // MARK: Commands

  private mutating func drawVerbs(_ random: inout SeededGenerator) {
    let slowness = parameters["rate"] == nil ? 1 : 10
    switch Int.random(in: 0..<12, using: &random) {
    case 0...2: cancelAfter = .microseconds(Int.random(in: 0...25_000, using: &random) * slowness)
    case 3:
      pause = (
        .microseconds(Int.random(in: 0...15_000, using: &random) * slowness),
        .milliseconds(.random(in: 0...20, using: &random))
      )
    default: break
    }
  }

  // MARK: Properties

  /// The requested bytes.
  var wanted: ByteRange { (range ?? 0..<length).clamped(to: 0..<length) }

  /// The path of the resource.
  var path: String { "/data/faults/s\(seed).bin" }

  /// Path and query of the resource.
  var resource: String {
    var parameters = parameters
    if let beyond = parametersBeyondRedirect {
      let faults: Set = ["fault", "status", "retry-after", "redirect-status", "stall-seconds"]
      let common = self.parameters.filter {
        !faults.contains($0.key) && !$0.key.hasPrefix("fault-")
      }
      parameters["redirect"] =
        query("/data/faults/beyond/s\(seed).bin", common.merging(beyond) { $1 }).percentEncoded
    }
    return query(path, parameters)
  }

  private func query(_ path: String, _ parameters: Parameters) -> String {
    let pairs = parameters.sorted { $0.key < $1.key }.map { "&\($0.key)=\($0.value)" }
    return "\(path)?length=\(length)&seed=\(contentSeed)" + pairs.joined()
  }

  /// The parameters that remove all faults of the resource if set to null.
  static let faultParameters = ["fault", "status", "redirect", "etag-flip"]

  var description: String {
    var text = "\(target) \(connections) \(resource)"
    if let range { text += " range \(range)" }
    if let later { text += " then \(later.parameters.sorted { $0.key < $1.key }) \(later.after)" }
    if let cancelAfter { text += " cancelled after \(cancelAfter)" }
    if let pause { text += " paused after \(pause.after) for \(pause.lasting)" }
    if let takerDelay { text += " taken every \(takerDelay)" }
    return text
  }
}

extension SeededGenerator {
  /// True once in `count` draws.
  fileprivate mutating func isTrue(outOf count: Int) -> Bool {
    Int.random(in: 0..<count, using: &self) == 0
  }

  fileprivate mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int.random(in: 0..<elements.count, using: &self)]
  }
}

extension String {
  /// The text as a value of a query, with its separators encoded.
  fileprivate var percentEncoded: String {
    let encoded = ["%": "%25", "&": "%26", "=": "%3D", "?": "%3F", "/": "%2F"]
    return map { encoded[String($0)] ?? String($0) }.joined()
  }
}
