internal import Dispatch

/// What a ``BodyDecoder`` tells, on the network thread.
protocol BodyDecoderOwner: AnyObject {
  /// Whether the next decoded piece may be taken; if not, ``BodyDecoder/resume()`` follows later.
  func mayTakeDecoded() -> Bool

  /// Takes a decoded piece, which is valid during the call only.
  ///
  /// - Returns: whether another one is wanted.
  func take(decoded piece: UnsafeRawBufferPointer) -> Bool

  /// There is room for coded bytes again.
  func decoderHasRoom()

  /// The body is decoded, as far as it has come.
  ///
  /// - Parameter unfinished: a coding whose data has not ended; nil if all have.
  func decodingEnded(unfinished: ContentCoding?)

  func decodingFailed(_ failure: DecodingFailure)
}

/// Decodes one body on a queue of its own, between the network and whoever stores the bytes.
///
/// It makes a piece only after the one before was taken, and takes coded bytes only while few wait.
/// So memory is bounded however much a body grows, and no thread waits.
///
/// `@unchecked Sendable`: everything belongs to the network thread, except the chain and the piece
/// while the queue is at work.
final class BodyDecoder: @unchecked Sendable {
  /// So much is decoded at a time: enough that the changes of threads cost little.
  private static let pieceByteCount = 256 << 10

  /// The network pauses while so many coded bytes wait.
  private static let waitingLimit = 256 << 10

  private let client: HTTPClient
  private let queue = DispatchQueue(label: "httpfs.decoder")
  private let chain: DecoderChain
  private let piece = GatherBuffer(byteCount: pieceByteCount)
  /// Nil once nothing more is wanted.
  private weak var owner: (any BodyDecoderOwner)?
  /// The coded bytes that the chain has not got.
  private var waiting: [UInt8] = []
  /// How many of those that it has got it has not read.
  private var unreadByteCount = 0
  /// How much of `piece` is decoded and not taken.
  private var decodedByteCount = 0
  private var isBusy = false
  /// Whether the chain may have more to write.
  private var isBehind = false
  /// Whether coded bytes were refused.
  private var isFull = false
  private var hasEnded = false
  private var failure: DecodingFailure?

  /// - Parameters:
  ///   - codings: the codings of the body; at least one.
  ///   - client: on its network thread the owner is told.
  ///   - owner: is told; it is not held.
  init(_ codings: [ContentCoding], client: HTTPClient, owner: any BodyDecoderOwner) {
    chain = DecoderChain(codings)
    self.client = client
    self.owner = owner
  }

  /// Takes coded bytes.
  ///
  /// - Returns: false if too many wait; ``BodyDecoderOwner/decoderHasRoom()`` follows.
  func add(_ bytes: UnsafeRawBufferPointer) -> Bool {
    isFull = waiting.count + unreadByteCount >= Self.waitingLimit
    guard !isFull else { return false }
    waiting += bytes
    resume()
    return true
  }

  /// No more coded bytes come.
  func end() {
    hasEnded = true
    resume()
  }

  /// Nothing more is wanted.
  func cancel() { owner = nil }

  /// Hands over what is decoded, if it may, and decodes what follows.
  func resume() {
    guard !isBusy, let owner else { return }
    if decodedByteCount > 0 {
      guard owner.mayTakeDecoded() else { return }
      let decoded = UnsafeRawBufferPointer(rebasing: piece.bytes[..<decodedByteCount])
      decodedByteCount = 0
      // What the piece brings about may call this method.
      isBusy = true
      let wantsMore = owner.take(decoded: decoded)
      isBusy = false
      guard wantsMore else { return cancel() }
    }
    if let failure {
      cancel()
      return owner.decodingFailed(failure)
    }
    guard isBehind || !waiting.isEmpty else {
      guard hasEnded else { return }
      cancel()
      return owner.decodingEnded(unfinished: chain.unfinished)
    }
    isBusy = true
    let bytes = waiting
    unreadByteCount += bytes.count
    waiting = []
    queue.async { [self] in
      chain.add(bytes)
      let result = fill()
      client.perform { [self] in decoded(result) }
    }
  }

  private func fill() -> Result<Int, DecodingFailure> {
    do throws(DecodingFailure) {
      return .success(try chain.fill(piece.bytes))
    } catch {
      return .failure(error)
    }
  }

  private func decoded(_ result: Result<Int, DecodingFailure>) {
    isBusy = false
    switch result {
    case .success(let byteCount):
      decodedByteCount = byteCount
      isBehind = byteCount == piece.bytes.count
    case .failure(let failure): self.failure = failure
    }
    unreadByteCount = chain.unreadByteCount
    if isFull, waiting.count + unreadByteCount <= Self.waitingLimit / 2 {
      isFull = false
      owner?.decoderHasRoom()
    }
    resume()
  }
}
