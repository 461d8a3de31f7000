import Synchronization

/// A report that is written while it is read, so that the memory it takes does not grow with its files.
///
/// The first ``window`` bytes are written at once: a report that is no longer is a picture of one moment,
/// and may be read in any order. Of a longer one, sums are those of the beginning, each file is told of as
/// it is when its row is written, and what lies ``window`` bytes behind the reader is gone.
///
/// Lock order: `state` comes before the locks of files, which the rows take one at a time.
public final class StatusStream: Sendable {
  /// How many bytes are kept.
  public static let window = 4 << 20

  /// How many of them lie before the last read, for readers of several threads or with a step back.
  private static let memory = 1 << 20

  private struct State {
    /// Where the document is continued.
    var pass = 0
    var index = 0
    var isEnded = false
    /// The offset of the first byte that is kept.
    var start = 0
    var bytes: [UInt8] = []

    var end: Int { start + bytes.count }
  }

  private let document: StatusDocument
  private let fileCount: Int
  private let file: @Sendable (Int) -> FileStatus
  private let state = Mutex(State())

  /// - Parameters:
  ///   - document: how files are written.
  ///   - fileCount: how many there are.
  ///   - file: tells of one, counted from 0; from memory only.
  public init(
    _ document: StatusDocument, fileCount: Int, file: @escaping @Sendable (Int) -> FileStatus
  ) {
    self.document = document
    self.fileCount = fileCount
    self.file = file
    state.withLock { write(to: Self.window, &$0) }
  }

  /// How many bytes are held now.
  public var heldByteCount: Int { state.withLock { $0.bytes.count } }

  /// The bytes at an offset: fewer than asked for at the end.
  ///
  /// - Returns: nil where they are gone.
  public func read(at offset: Int, byteCount: Int) -> [UInt8]? {
    state.withLock { state in
      guard offset >= state.start, byteCount >= 0 else { return nil }
      let (end, overflow) = offset.addingReportingOverflow(byteCount)
      while !state.isEnded, state.end < (overflow ? .max : end) {
        write(to: state.end + Self.memory, &state)
        forget(before: offset - Self.memory, &state)
      }
      let first = min(offset - state.start, state.bytes.count)
      return Array(state.bytes[first..<min(first + byteCount, state.bytes.count)])
    }
  }

  /// Writes rows until the document has come to `end`.
  private func write(to end: Int, _ state: inout State) {
    while !state.isEnded, state.end < end {
      guard state.pass < document.passes.count else {
        state.bytes += document.ending
        state.isEnded = true
        return
      }
      let pass = document.passes[state.pass]
      if state.index == 0 { state.bytes += pass.heading }
      if state.index < fileCount {
        pass.row(file(state.index), state.index == 0, &state.bytes)
        state.index += 1
      }
      if state.index >= fileCount {
        state.pass += 1
        state.index = 0
      }
    }
  }

  /// Gives up what lies before an offset, where that is much and more than the window is kept.
  private func forget(before offset: Int, _ state: inout State) {
    let count = min(offset - state.start, state.bytes.count)
    guard state.bytes.count > Self.window, count >= Self.memory else { return }
    state.bytes.removeFirst(count)
    state.start += count
  }
}
