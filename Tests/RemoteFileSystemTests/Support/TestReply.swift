import Glibc
import RemoteFileSystem
import RemoteFiles
import Synchronization

/// A reply that resumes the test that waits for it.
struct TestReply: FileSystemReply, ~Copyable {
  /// The state of one request.
  private final class Request: Sendable {
    private let waiting: Mutex<CheckedContinuation<Answer, Never>?>
    let acceptsOpens: Bool
    /// Gets the reply if it is parked, like a driver that can interrupt the request.
    let whenParked: (@Sendable (ParkedReply<TestReply>) -> Void)?

    init(
      _ waiting: CheckedContinuation<Answer, Never>, acceptsOpens: Bool,
      whenParked: (@Sendable (ParkedReply<TestReply>) -> Void)?
    ) {
      self.waiting = Mutex(waiting)
      self.acceptsOpens = acceptsOpens
      self.whenParked = whenParked
    }

    deinit { answer(.dropped) }

    func answer(_ answer: Answer) {
      waiting.withLock { $0.take() }?.resume(returning: answer)
    }
  }

  private let request: Request

  /// Sends a request to the file system and waits for the reply.
  ///
  /// - Parameters:
  ///   - acceptsOpens: whether the kernel accepts the handle that the request opens.
  ///   - whenParked: gets the reply if it is parked.
  ///   - send: calls the file system.
  /// - Returns: the file system's reply.
  static func to(
    acceptsOpens: Bool = true,
    whenParked: (@Sendable (ParkedReply<TestReply>) -> Void)? = nil,
    _ send: (consuming TestReply) -> Void
  ) async -> Answer {
    await withCheckedContinuation { continuation in
      send(
        TestReply(
          request: Request(continuation, acceptsOpens: acceptsOpens, whenParked: whenParked)))
    }
  }

  var userID: uid_t { getuid() }

  consuming func error(_ errno: CInt) { request.answer(.error(errno)) }

  consuming func entry(_ attributes: FileAttributes) { request.answer(.entry(attributes)) }

  consuming func attributes(_ attributes: FileAttributes) {
    request.answer(.attributes(attributes))
  }

  consuming func open(_ handle: OpenHandle, _ mode: HandleMode) -> Bool {
    request.answer(.opened(handle, mode))
    return request.acceptsOpens
  }

  consuming func items(_ items: ArraySlice<OpenHandle.Item>, byteCount: Int) {
    request.answer(.items(items.map(\.name)))
  }

  consuming func present(_ bytes: PresentBytes) {
    var all: [UInt8] = []
    for piece in bytes.pieces {
      var buffer = [UInt8](repeating: 0, count: piece.byteCount)
      let offset = off_t(bytes.offset) + off_t(all.count)
      guard pread(piece.descriptor, &buffer, buffer.count, offset) == buffer.count else {
        return error(EIO)
      }
      all += buffer
    }
    request.answer(.bytes(all))
  }

  consuming func bytes(_ bytes: ArraySlice<UInt8>) { request.answer(.bytes(Array(bytes))) }

  consuming func extendedAttribute(_ bytes: [UInt8], room: Int) {
    request.answer(.extendedAttribute(bytes, room: room))
  }

  consuming func written(_ byteCount: Int) { request.answer(.written(byteCount)) }

  consuming func statfs(_ values: statvfs) { request.answer(.statistics(values)) }

  consuming func parked() -> ParkedReply<TestReply> {
    let whenParked = request.whenParked
    let parked = ParkedReply(self)
    whenParked?(parked)
    return parked
  }
}
