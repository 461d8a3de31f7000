/// The outcomes of the scripts for each kind of fault.
struct FaultTally: CustomStringConvertible {
  private var counts: [String: [FaultScriptRun.Ending: Int]] = [:]

  mutating func note(_ script: FaultScript, _ ending: FaultScriptRun.Ending) {
    counts[script.kind, default: [:]][ending, default: 0] += 1
  }

  func count(of ending: FaultScriptRun.Ending) -> Int {
    counts.values.reduce(0) { $0 + $1[ending, default: 0] }
  }

  var description: String {
    counts.sorted { $0.key < $1.key }.map { kind, endings in
      let parts = FaultScriptRun.Ending.allCases.map { "\(endings[$0, default: 0]) \($0.rawValue)" }
      return "  \(kind): \(parts.joined(separator: ", "))"
    }.joined(separator: "\n")
  }
}
