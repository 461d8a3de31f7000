import TransferDisplay

/// What a piece of a line means; a terminal shows it by colour or weight.
package enum LineStyle: Sendable, Equatable {
  case plain
  /// A title, or a figure that matters.
  case strong
  /// What is there to be looked up.
  case faint
  case good
  case warning
  case bad
  /// The file that the keys are about.
  case selected
}

/// A line of the screen: pieces of text without control characters.
package struct StyledLine: Sendable, Equatable {
  package struct Piece: Sendable, Equatable {
    package var text: String
    package var style: LineStyle
  }

  package private(set) var pieces: [Piece] = []

  package init() {}

  /// A line of one piece; see ``append(_:_:)``.
  init(_ text: String, _ style: LineStyle = .plain) { append(text, style) }

  /// Adds a piece of text that has been made ``displayable(_:isUTF8:)``.
  mutating func append(_ text: String, _ style: LineStyle = .plain) {
    if !text.isEmpty { pieces.append(Piece(text: text, style: style)) }
  }

  /// The whole text.
  package var text: String { pieces.map(\.text).joined() }

  /// How many columns it takes at most.
  var width: Int { pieces.reduce(0) { $0 + displayWidth($1.text) } }

  /// The line, cut where it is wider than `columns`.
  func fitted(to columns: Int, ellipsis: String) -> StyledLine {
    guard width > columns else { return self }
    var line = StyledLine()
    var room = columns
    for piece in pieces where room > 0 {
      let text = cutAtEnd(piece.text, to: room, ellipsis: ellipsis)
      line.append(text, piece.style)
      // What was cut has used up the room, but for half of a wide character.
      room = text == piece.text ? room - displayWidth(text) : 0
    }
    return line
  }
}

/// What is to be seen on a terminal.
package struct Screen: Sendable, Equatable {
  /// The lines from the top, no more than the terminal has rows, none wider than it.
  package var lines: [StyledLine]

  /// Where the cursor stands, both from 0; nil where it is hidden.
  package var cursor: Position?

  package struct Position: Sendable, Equatable {
    package var row: Int
    package var column: Int
  }
}
