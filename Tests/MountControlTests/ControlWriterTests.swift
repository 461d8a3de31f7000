import MountControl
import Testing

/// The results of several writes over one handle.
@Suite struct ControlWriterTests {
  /// The result of each of `texts`, written one after the other.
  ///
  /// A result is the number of commands, or the refusal.
  private func outcomes(_ texts: String...) -> [Outcome] {
    var writer = ControlWriter()
    return texts.map { text in
      do throws(ControlRefusal) {
        return .taken(try writer.take(text.utf8).count)
      } catch {
        return .refused(error)
      }
    }
  }

  private enum Outcome: Equatable {
    case taken(Int)
    case refused(ControlRefusal)
  }

  private let nonsense = Outcome.refused(.invalid("there is no command 'nonsense'"))

  /// A command of `byteCount` bytes including the newline.
  private func line(byteCount: Int) -> String {
    "evict " + String(repeating: "a", count: byteCount - 7) + "\n"
  }

  @Test("Each write that ends its last line is a batch of its own")
  func batches() {
    #expect(
      outcomes("pause\n", "resume\npause\n", "\n", "nonsense\n", "resume\n")
        == [.taken(1), .taken(2), .taken(0), nonsense, .taken(1)])
  }

  @Test("After an unfinished line nothing more is taken, done or refused")
  func unfinishedLine() {
    let continued = Outcome.refused(.continuation)
    #expect(outcomes("pause", " a.bin\n", "resume\n") == [.taken(1), continued, continued])
    #expect(outcomes("nonsense", "\n", "resume\n") == [nonsense, continued, continued])
    #expect(ControlRefusal.continuation.errno == 22)
    // The last of several lines may be incomplete.
    let cut = Outcome.refused(.invalid("the last one of several lines has no newline"))
    #expect(outcomes("pause\nevict *", ".iso\n") == [cut, continued])
  }

  @Test("A page is taken, more is refused and nothing after it taken")
  func length() {
    let tooLong = Outcome.refused(.tooLong)
    #expect(
      outcomes(line(byteCount: 4096), line(byteCount: 4097), "pause\n")
        == [.taken(1), tooLong, tooLong])
    #expect(ControlRefusal.tooLong.errno == 90)
  }

  @Test("A full buffer that ends within a line is refused, and what follows it")
  func cutByBuffer() {
    let tooLong = Outcome.refused(.tooLong)
    #expect(
      outcomes(String(line(byteCount: 4097).prefix(4096)), "\n", "pause\n")
        == [tooLong, tooLong, tooLong])
  }
}
