/// Reads the control characters and sequences (ECMA-48) of a terminal's input, scalar by scalar.
struct ControlSequenceParser {
  /// A change of the screen.
  enum Action: Equatable {
    case show(Unicode.Scalar)
    case carriageReturn
    case lineFeed
    case backspace
    case tabulator
    case up(Int)
    case down(Int)
    case right(Int)
    case left(Int)
    /// The column to move to, from 0.
    case column(Int)
    /// The position to move to, from 0.
    case position(row: Int, column: Int)
    case eraseLine(Part)
    case eraseScreen(Part)
  }

  /// The part of a line or of the screen to erase, relative to the cursor.
  enum Part: Equatable {
    case toEnd
    case toStart
    case all
  }

  private enum State {
    case text
    /// After ESC.
    case escape
    /// After `ESC [`, with the parameters so far.
    case sequence(String)
    /// After `ESC ]`: a title or a link, until BEL or `ESC \`.
    case command
  }

  private var state = State.text

  /// Parses the next scalar.
  ///
  /// - Returns: nil if it neither shows nor moves anything, or if the sequence is incomplete.
  mutating func parse(_ scalar: Unicode.Scalar) -> Action? {
    switch state {
    case .text:
      return text(scalar)
    case .escape:
      state =
        switch scalar {
        case "[": .sequence("")
        case "]": .command
        default: .text
        }
      return nil
    case .sequence(let parameters):
      // Parameters and intermediates are below 0x40; the final byte is not.
      guard scalar.value >= 0x40 else {
        state = .sequence(parameters + String(scalar))
        return nil
      }
      state = .text
      return action(final: scalar, parameters: parameters)
    case .command:
      if scalar == "\u{7}" { state = .text }
      if scalar == "\u{1b}" { state = .escape }
      return nil
    }
  }

  private mutating func text(_ scalar: Unicode.Scalar) -> Action? {
    switch scalar {
    case "\u{1b}":
      state = .escape
      return nil
    case "\r": return .carriageReturn
    case "\n": return .lineFeed
    case "\u{8}": return .backspace
    case "\t": return .tabulator
    default: return scalar.value < 0x20 || scalar.value == 0x7f ? nil : .show(scalar)
    }
  }

  /// The action of a sequence that begins with `ESC [`; colours, modes and unknown ones have none.
  private func action(final: Unicode.Scalar, parameters: String) -> Action? {
    let numbers = parameters.split(separator: ";", omittingEmptySubsequences: false).map {
      Int($0) ?? 0
    }
    let first = numbers.first ?? 0
    // A missing or zero count means 1, and so does a position, whose first place is 1.
    let count = max(first, 1)
    switch final {
    case "A": return .up(count)
    case "B": return .down(count)
    case "C": return .right(count)
    case "D": return .left(count)
    case "G": return .column(count - 1)
    case "H", "f":
      return .position(row: count - 1, column: max(numbers.count > 1 ? numbers[1] : 1, 1) - 1)
    case "K": return Self.part(first).map(Action.eraseLine)
    case "J": return Self.part(first).map(Action.eraseScreen)
    default: return nil
    }
  }

  private static func part(_ number: Int) -> Part? {
    switch number {
    case 0: .toEnd
    case 1: .toStart
    case 2: .all
    default: nil
    }
  }
}
