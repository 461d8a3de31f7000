/// What becomes of the writes that come over one open handle of `.control`.
///
/// Each write is a batch of its own. A writer that is cut into pieces on its way, by a buffer or by
/// the kernel, must not have its pieces taken for commands:
/// - A write of more than ``byteLimit`` bytes is refused, and with it all later ones of the handle.
/// - So is one of just so many bytes whose last line has no newline: a buffer was full.
/// - A shorter write may lack the newline where it is one line. It is the handle's last one then, done
///   or refused: what comes after it would continue that line.
/// - Several lines of which the last one has no newline are refused, as cut.
public struct ControlWriter: Sendable {
  /// The most bytes of one write: the size of a page, and of what a pipe takes at once.
  public static let byteLimit = 4096

  /// What every further write is refused with.
  private var refusal: ControlRefusal?

  public init() {}

  /// Takes the bytes of one write.
  ///
  /// - Returns: the commands of the batch.
  /// - Throws: why none of them is to be done.
  public mutating func take(_ bytes: some BidirectionalCollection<UInt8>) throws(ControlRefusal)
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
