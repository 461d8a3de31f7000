internal import DirectoryListing
internal import Synchronization

/// The bytes of a listing while it is received and parsed, counted against the budget of all
/// listings.
///
/// `@unchecked Sendable`: one thread has it at a time; the network thread hands it to the queue.
final class ListingBody: @unchecked Sendable {
  enum Outcome {
    case taken
    /// It is longer than any listing may be.
    case overLimit
    /// All listings together have no more room.
    case overBudget
  }

  private(set) var bytes: [UInt8] = []
  private let budget: ListingBudget

  init(budget: ListingBudget) { self.budget = budget }

  deinit { budget.giveBack(bytes.count) }

  func append(_ piece: UnsafeRawBufferPointer) -> Outcome {
    guard bytes.count + piece.count <= ListingError.maximumByteCount else { return .overLimit }
    guard budget.take(piece.count) else { return .overBudget }
    bytes += piece
    return .taken
  }
}

/// How many bytes all listings that are being received may hold.
///
/// Many directories may be requested at once, and a hostile server makes each as long as possible.
/// Lock order: a leaf.
final class ListingBudget: Sendable {
  private static let limit = 2 * ListingError.maximumByteCount

  private let used = Mutex(0)

  func take(_ byteCount: Int) -> Bool {
    used.withLock { used in
      guard used + byteCount <= Self.limit else { return false }
      used += byteCount
      return true
    }
  }

  func giveBack(_ byteCount: Int) { used.withLock { $0 -= byteCount } }
}
