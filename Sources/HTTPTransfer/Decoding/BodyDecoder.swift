internal import Dispatch

/// Receives the results of a ``BodyDecoder``, on the network thread.
protocol BodyDecoderOwner: AnyObject {
  /// Whether the next decoded piece may be taken; if not, ``BodyDecoder/resume()`` follows later.
  func mayTakeDecoded() -> Bool

  /// Takes a decoded piece, which is valid during the call only.
  ///
  /// - Returns: whether another one is wanted.
  func take(decoded piece: UnsafeRawBufferPointer) -> Bool

  /// Called when there is room for coded bytes again.
  func decoderHasRoom()

  /// Called when everything that arrived is decoded.
  ///
  /// - Parameter unfinished: a coding whose data has not ended; nil if all have.
  func decodingEnded(unfinished: ContentCoding?)

  /// Called at most once, instead of ``decodingEnded(unfinished:)``.
  func decodingFailed(_ failure: DecodingFailure)
}

/// Decodes one body on its own queue, between the network and the storage of the bytes.
///
/// It decodes the next piece only after the owner took the previous one, and accepts coded bytes
/// only while few wait. That bounds memory however much a body grows, and no thread waits.
///
/// `@unchecked Sendable`: everything belongs to the network thread, except the chain and the piece
/// while a job of the queue runs.
final class BodyDecoder: @unchecked Sendable {
  /// The size of a decoded piece, large enough that thread switches cost little.
  private static let pieceByteCount = 256 << 10

  /// The network pauses while this many coded bytes wait.
  private static let waitingLimit = 256 << 10

  private let client: ExchangeClient
  private let queue = DispatchQueue(label: "httpfs.decoder")
  private let chain: DecoderChain
  private let piece = GatherBuffer(byteCount: pieceByteCount)
  /// Nil after ``cancel()`` and after the end.
  private weak var owner: (any BodyDecoderOwner)?
  /// The coded bytes that were not passed to the chain yet.
  private var waiting: [UInt8] = []
  /// How many bytes the chain has and has not read.
  private var unreadByteCount = 0
  /// How many bytes of `piece` are decoded and not taken.
  private var decodedByteCount = 0
  private var isBusy = false
  /// Whether the chain may have more to write.
  private var isBehind = false
  /// Whether coded bytes were refused since there was room.
  private var isFull = false
  private var hasEnded = false
  private var failure: DecodingFailure?

  /// - Parameters:
  ///   - codings: the codings of the body; at least one.
  ///   - client: its network thread calls the owner.
  ///   - owner: receives the results; held weakly.
  init(_ codings: [ContentCoding], client: ExchangeClient, owner: any BodyDecoderOwner) {
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

  /// Call it after the last coded bytes.
  func end() {
    hasEnded = true
    resume()
  }

  /// Drops everything that is not taken yet.
  func cancel() { owner = nil }

  /// Hands over the decoded piece if the owner accepts it, and decodes the next one.
  func resume() {
    guard !isBusy, let owner else { return }
    if decodedByteCount > 0 {
      guard owner.mayTakeDecoded() else { return }
      let decoded = UnsafeRawBufferPointer(rebasing: piece.bytes[..<decodedByteCount])
      decodedByteCount = 0
      // The owner may call this method while it takes the piece.
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
