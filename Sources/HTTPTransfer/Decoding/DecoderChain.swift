/// Decodes all codings of one body, the last one first, in bounded memory.
///
/// Its caller pulls: a decoder reads from the previous one only when it needs more.
final class DecoderChain {
  /// How much output of one decoder waits for the next one.
  private static let betweenByteCount = 64 << 10

  /// One decoder and its unread input.
  private final class Stage {
    let coding: ContentCoding
    private var decoder: (any ContentDecoder)?
    private var input: [UInt8] = []
    private var offset = 0
    /// Whether the last step filled the output, so that the decoder may hold more bytes.
    private var mayHaveMore = false

    init(_ coding: ContentCoding) { self.coding = coding }

    var unreadByteCount: Int { input.count - offset }
    var isAtEnd: Bool { unreadByteCount == 0 && decoder?.isAtEnd == true }

    func add(_ bytes: [UInt8]) {
      if unreadByteCount == 0 {
        input = bytes
      } else {
        input.removeFirst(offset)
        input += bytes
      }
      offset = 0
    }

    /// Fills `output` as far as the input allows.
    func fill(_ output: UnsafeMutableRawBufferPointer) throws(DecodingFailure) -> Int {
      var written = 0
      while written < output.count, unreadByteCount > 0 || mayHaveMore {
        let decoder = if let decoder { decoder } else { try coding.makeDecoder() }
        self.decoder = decoder
        let room = UnsafeMutableRawBufferPointer(rebasing: output[written...])
        let step = input.withUnsafeBytes {
          [offset] bytes -> Result<(read: Int, written: Int), DecodingFailure> in
          do throws(DecodingFailure) {
            let unread = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            return .success(try decoder.decode(unread, into: room))
          } catch {
            return .failure(error)
          }
        }
        let (read, count) = try step.get()
        // A decoder that makes no progress despite input and room never would.
        if read == 0, count == 0, unreadByteCount > 0 { throw .damaged(coding) }
        offset += read
        written += count
        mayHaveMore = count == room.count
      }
      return written
    }
  }

  /// In the order of decoding.
  private let stages: [Stage]

  /// - Parameter codings: the codings in the order in which they were applied; at least one.
  init(_ codings: [ContentCoding]) { stages = codings.reversed().map { Stage($0) } }

  /// How many coded bytes were added and not read.
  var unreadByteCount: Int { stages.first?.unreadByteCount ?? 0 }

  /// The first coding whose data has not ended with what was added; nil if all have.
  var unfinished: ContentCoding? { stages.first { !$0.isAtEnd }?.coding }

  /// Adds coded bytes.
  func add(_ bytes: [UInt8]) {
    if !bytes.isEmpty { stages.first?.add(bytes) }
  }

  /// Decodes until `output` is full or everything added is read.
  ///
  /// - Returns: the number of decoded bytes; less than `output` has if everything is read.
  func fill(_ output: UnsafeMutableRawBufferPointer) throws(DecodingFailure) -> Int {
    try fill(output, from: stages.count - 1)
  }

  private func fill(
    _ output: UnsafeMutableRawBufferPointer, from index: Int
  ) throws(DecodingFailure) -> Int {
    guard stages.indices.contains(index) else { return 0 }
    var written = 0
    while true {
      written += try stages[index].fill(
        UnsafeMutableRawBufferPointer(rebasing: output[written...]))
      guard index > 0, written < output.count else { return written }
      let bytes = try read(from: index - 1)
      guard !bytes.isEmpty else { return written }
      stages[index].add(bytes)
    }
  }

  /// The next output of a stage; empty if it needs more input.
  private func read(from index: Int) throws(DecodingFailure) -> [UInt8] {
    var failure: DecodingFailure?
    let bytes = [UInt8](unsafeUninitializedCapacity: Self.betweenByteCount) { buffer, count in
      do throws(DecodingFailure) {
        count = try fill(UnsafeMutableRawBufferPointer(buffer), from: index)
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes
  }
}
