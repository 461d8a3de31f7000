/// Interprets the writes over one open handle of `.control`.
///
/// Each write is a batch of its own. A buffer or the kernel may cut a program's output into pieces,
/// and a piece must not be taken for a command:
/// - A write of more than ``byteLimit`` bytes is refused, and so are all later writes of the
///   handle.
/// - A write of exactly ``byteLimit`` bytes whose last line has no newline is refused too: a buffer
///   was full.
/// - A shorter write may lack the newline if it is one line. It must then be the last write of the
///   handle, because later bytes would continue that line.
/// - Several lines without a final newline are refused as cut.
package struct ControlWriter: Sendable {
  /// The maximum number of bytes of one write: a page, which is what a pipe takes at once.
  package static let byteLimit = 4096

  /// The error of every further write.
  private var refusal: ControlRefusal?

  package init() {}

  /// Takes the bytes of one write.
  ///
  /// - Returns: the commands of the batch.
  /// - Throws: why none of them is executed.
  package mutating func take(_ bytes: some BidirectionalCollection<UInt8>) throws(ControlRefusal)
    -> [ControlCommand]
  {
    if let refusal { throw refusal }
    let isUnfinished = bytes.last.map { $0 != UInt8(ascii: "\n") } ?? false
    guard bytes.count < Self.byteLimit || bytes.count == Self.byteLimit && !isUnfinished else {
      refusal = .tooLong
      throw .tooLong
    }
    if isUnfinished {
      refusal = .continuation
      guard !bytes.contains(UInt8(ascii: "\n")) else {
        throw .invalid("the last one of several lines has no newline")
      }
    }
    return try ControlParser.commands(bytes)
  }
}
