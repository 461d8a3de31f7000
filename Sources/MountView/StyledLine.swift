import TextFormat

/// The meaning of a piece of a line; a terminal shows it by colour or weight.
package enum LineStyle: Sendable, Equatable {
  case plain
  /// A title, or a figure that matters.
  case strong
  /// Reference information.
  case faint
  case good
  case warning
  case bad
  /// The file that the keys act on.
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

  /// Appends a piece of text that is already ``displayable(_:isUTF8:)``.
  mutating func append(_ text: String, _ style: LineStyle = .plain) {
    if !text.isEmpty { pieces.append(Piece(text: text, style: style)) }
  }

  /// The whole text.
  package var text: String { pieces.map(\.text).joined() }

  /// How many columns it takes at most.
  var width: Int { pieces.reduce(0) { $0 + displayWidth($1.text) } }

  /// The line, cut if it is wider than `columns`.
  func fitted(to columns: Int, ellipsis: String) -> StyledLine {
    guard width > columns else { return self }
    var line = StyledLine()
    var room = columns
    for piece in pieces where room > 0 {
      let text = cutAtEnd(piece.text, to: room, ellipsis: ellipsis)
      line.append(text, piece.style)
      // The cut piece has filled the room, except perhaps for half of a wide character.
      room = text == piece.text ? room - displayWidth(text) : 0
    }
    return line
  }
}

/// The content of a terminal.
package struct Screen: Sendable, Equatable {
  /// The lines from the top, no more than the terminal has rows, none wider than it.
  package var lines: [StyledLine]

  /// The position of the cursor, both from 0; nil if it is hidden.
  package var cursor: Position?

  package struct Position: Sendable, Equatable {
    package var row: Int
    package var column: Int
  }
}
