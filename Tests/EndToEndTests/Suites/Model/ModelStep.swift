import SeededRandom

/// One step in a run of the model.
enum ModelStep {
  case open(file: Int)
  case read(handle: Int, offset: Int64, count: Int)
  case readAll(handle: Int, pieceByteCount: Int)
  case map(handle: Int, offset: Int64, count: Int)
  case length(handle: Int)
  case close(handle: Int)
  case change(file: Int)
  case rollBack(file: Int)
  case fail(file: Int, ModelFault)
  case heal
  case stopOrigin
  case restartOrigin
  case reload(files: [Int])
  case kill
  case remount
  case pause(milliseconds: Int)

  /// The state that determines the possible next steps.
  struct Situation {
    let fileCount: Int
    let lengths: [Int64]
    /// The handles that are open, by their numbers.
    let handles: [Int]
    let isOriginRunning: Bool
    let hasFault: Bool
  }

  /// The next step of a run.
  static func next(
    in situation: Situation, using generator: inout SeededGenerator
  ) -> ModelStep {
    let file = Int.random(in: 0..<situation.fileCount, using: &generator)
    let roll = Int.random(in: 0..<100, using: &generator)
    // Faults end soon, so most of a run shows operations that must succeed.
    if !situation.isOriginRunning, roll < 25 { return .restartOrigin }
    if situation.hasFault, roll < 18 { return .heal }
    let handle = situation.handles.randomElement(using: &generator)
    guard let handle, situation.handles.count < 9 || roll >= 45 else {
      if let handle, roll < 25 { return .close(handle: handle) }
      return .open(file: file)
    }
    switch roll {
    case ..<20: return .open(file: file)
    case ..<50: return read(handle, in: situation, using: &generator)
    case ..<56:
      return .map(
        handle: handle, offset: offset(in: situation, using: &generator),
        count: Int.random(in: 1...100_000, using: &generator))
    case ..<63:
      return .readAll(
        handle: handle,
        pieceByteCount: [4096, 65_536, 131_072, 1 << 20].randomElement(using: &generator) ?? 65_536)
    case ..<66: return .length(handle: handle)
    case ..<71: return .close(handle: handle)
    case ..<79: return .change(file: file)
    case ..<80: return .rollBack(file: file)
    case ..<88:
      let kinds = ModelFault.allCases.filter { $0 != .offline }
      return .fail(file: file, kinds.randomElement(using: &generator) ?? .reset)
    case ..<90: return situation.isOriginRunning ? .stopOrigin : .restartOrigin
    case ..<93:
      let kept = (0..<situation.fileCount).filter { _ in
        Int.random(in: 0..<4, using: &generator) != 0
      }
      return .reload(files: kept.isEmpty ? [file] : kept)
    case ..<95: return .kill
    case ..<96: return .remount
    default: return .pause(milliseconds: Int.random(in: 1...1200, using: &generator))
    }
  }

  private static func read(
    _ handle: Int, in situation: Situation, using generator: inout SeededGenerator
  ) -> ModelStep {
    let counts = [1, 4096, 16_384, 65_536, 131_072, 262_144]
    let count = counts.randomElement(using: &generator) ?? 4096
    return .read(
      handle: handle, offset: offset(in: situation, using: &generator),
      count: Bool.random(using: &generator) ? count : Int.random(in: 1...count, using: &generator))
  }

  private static func offset(
    in situation: Situation, using generator: inout SeededGenerator
  ) -> Int64 {
    let length = situation.lengths.randomElement(using: &generator) ?? 1
    switch Int.random(in: 0..<6, using: &generator) {
    case 0: return 0
    case 1: return length - Int64.random(in: 1...8192, using: &generator)
    case 2: return Int64.random(in: 0..<length, using: &generator) & ~4095
    default: return Int64.random(in: 0..<length, using: &generator)
    }
  }
}
