/// A key that was pressed on a terminal.
package enum Key: Hashable, Sendable {
  /// A key that types a character.
  case character(Character)
  /// Ctrl and a letter, in lower case.
  case control(Character)
  case up
  case down
  case pageUp
  case pageDown
  case home
  case end
  case enter
  case escape
  case backspace
}
