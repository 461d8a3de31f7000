import HTTPTransferCore
import MountControl
import MountStatus

/// The action of the program after a key.
package enum ViewAction: Hashable, Sendable {
  case quit
  /// Stop the process, as after Ctrl-Z.
  case suspend
  /// Redraw the whole screen.
  case redraw
  case control(ControlRequest)
}

extension StatusView {
  /// Handles a key.
  ///
  /// - Returns: what to do in addition to showing the new screen.
  package mutating func press(_ key: Key) -> ViewAction? {
    switch key {
    case .control("c"): return .quit
    case .control("z"): return .suspend
    case .control("l"): return .redraw
    default: break
    }
    switch mode {
    case .files:
      notice = nil
      return pressInFiles(key)
    case .help:
      mode = .files
      return nil
    case .filter(let before):
      pressInFilter(key, before: before)
      return nil
    case .eviction(let name):
      mode = .files
      guard key == .character("y") || key == .character("Y") else {
        notice = Notice(text: "nothing was evicted")
        return nil
      }
      return request(.file(.evict, name: name))
    case .question(let question, let answer):
      return pressInQuestion(key, question, answer)
    }
  }

  private mutating func pressInFiles(_ key: Key) -> ViewAction? {
    switch key {
    case .up, .character("k"): move(by: -1)
    case .down, .character("j"): move(by: 1)
    case .pageUp, .control("b"): move(by: -visibleRowCount)
    case .pageDown, .control("f"), .character(" "): move(by: visibleRowCount)
    case .home, .character("g"): selectFirst()
    case .end, .character("G"): select(row: shown.count - 1)
    case .escape: selection.filter = ""
    case .character(let character): return press(command: character)
    default: break
    }
    return nil
  }

  private mutating func press(command: Character) -> ViewAction? {
    switch command {
    case "q": return .quit
    case "?", "h": mode = .help
    case "/": mode = .filter(before: selection.filter)
    case "s":
      selection.order = selection.order.next
      notice = Notice(text: "sorted by \(selection.order.rawValue)")
    case "a": selection.onlyActive.toggle()
    case "d": showsDetails.toggle()
    case "n": mode = .question(.connections, answer: "")
    case "l": mode = .question(.rateLimit, answer: "")
    case "P":
      let isPaused = !pausedNames.isEmpty || sums.count(of: .paused) > 0
      return request(.file(isPaused ? .resume : .pause, name: nil))
    case "R": return request(.file(.refresh, name: nil))
    case "p", "f", "c", "e", "i", "v", "r": return press(fileCommand: command)
    default: break
    }
    return nil
  }

  /// Handles a key that acts on the selected file.
  private mutating func press(fileCommand: Character) -> ViewAction? {
    guard let file = selectedFile else {
      notice = Notice(text: "no file is selected", isFailure: true)
      return nil
    }
    let verb: FileVerb
    switch fileCommand {
    case "p":
      verb = file.state == .paused || pausedNames.contains(file.name) ? .resume : .pause
    case "f": verb = .prefetch
    case "c": verb = .cancel
    case "i": verb = file.pinned ? .unpin : .pin
    case "v": verb = .verify
    case "r": verb = .refresh
    default:
      mode = .eviction(name: file.name)
      return nil
    }
    return request(.file(verb, name: file.name))
  }

  private mutating func pressInFilter(_ key: Key, before: String) {
    switch key {
    case .enter: mode = .files
    case .escape:
      selection.filter = before
      mode = .files
    case .up: move(by: -1)
    case .down: move(by: 1)
    default: selection.filter = Self.edited(selection.filter, by: key)
    }
  }

  private mutating func pressInQuestion(
    _ key: Key, _ question: Question, _ answer: String
  ) -> ViewAction? {
    switch key {
    case .escape:
      mode = .files
      return nil
    case .enter:
      mode = .files
      if answer.isEmpty { return nil }
      return request(question, answer)
    default:
      mode = .question(question, answer: Self.edited(answer, by: key))
      return nil
    }
  }

  private mutating func request(_ question: Question, _ answer: String) -> ViewAction? {
    switch question {
    case .connections:
      if ControlCommand.connections(answer) != nil { return request(.connections(answer)) }
      notice = Notice(
        text: "'\(answer)' is neither a number from 1 to 64 nor auto", isFailure: true)
    case .rateLimit:
      if bytesPerSecond(ofText: answer) != nil { return request(.rateLimit(answer)) }
      notice = Notice(
        text: "'\(answer)' is not a byte count; write, for example, 500K or 10M", isFailure: true)
    }
    return nil
  }

  private mutating func request(_ request: ControlRequest) -> ViewAction {
    notice = Notice(text: "\(request.description) …")
    return .control(request)
  }

  /// The maximum length of typed text, longer than any name.
  private static let longestText = 255

  /// `text` after a key of the line editor.
  private static func edited(_ text: String, by key: Key) -> String {
    switch key {
    case .character(let character) where text.utf8.count < longestText:
      return text + String(character)
    case .backspace: return String(text.dropLast())
    case .control("u"): return ""
    default: return text
    }
  }
}
