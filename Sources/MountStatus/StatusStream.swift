import Synchronization

/// A report that is written while a program reads it, so that its memory does not grow with the
/// number of files.
///
/// The first ``window`` bytes are written at once: a report that fits into them shows one moment
/// and can be read in any order. In a longer report, the sums are those of the beginning, and each
/// file's row shows the file when the row is written. Bytes that lie more than ``window`` behind
/// the reader are dropped.
///
/// Lock order: `state` comes before the locks of files, which the rows take one at a time.
package final class StatusStream: Sendable {
  /// How many bytes are kept.
  package static let window = 4 << 20

  /// How many kept bytes lie before the last read, for readers with several threads or that step
  /// back.
  private static let memory = 1 << 20

  private struct State {
    /// Where writing continues.
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
  ///   - document: formats the rows.
  ///   - fileCount: the number of files.
  ///   - file: the state of one file, counted from 0; must only use memory.
  package init(
    _ document: StatusDocument, fileCount: Int, file: @escaping @Sendable (Int) -> FileStatus
  ) {
    self.document = document
    self.fileCount = fileCount
    self.file = file
    state.withLock { write(to: Self.window, &$0) }
  }

  /// How many bytes are held now.
  package var heldByteCount: Int { state.withLock { $0.bytes.count } }

  /// The bytes at an offset: fewer than requested at the end.
  ///
  /// - Returns: nil if the bytes were dropped.
  package func read(at offset: Int, byteCount: Int) -> [UInt8]? {
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

  /// Writes rows until the document has reached `end`.
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

  /// Drops bytes before an offset, if these are many and more than the window is kept.
  private func forget(before offset: Int, _ state: inout State) {
    let count = min(offset - state.start, state.bytes.count)
    guard state.bytes.count > Self.window, count >= Self.memory else { return }
    state.bytes.removeFirst(count)
    state.start += count
  }
}
