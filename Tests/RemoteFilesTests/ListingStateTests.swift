import DirectoryListing
import HTTPTransferCore
import Testing

@testable import RemoteFiles

@Suite final class ListingStateTests {
  private let start = ContinuousClock.now
  private var state = ListingState(
    settings: .init(timeToLive: .seconds(60), timeout: .seconds(30)))

  private func names(tag: String? = nil) throws -> ListedNames {
    ListedNames(
      listing: DirectoryListing(), url: try RemoteURL("http://h/d/"),
      entityTag: tag.map { EntityTag(opaque: $0) })
  }

  /// The moment `seconds` seconds after the start.
  private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

  /// Requests the names; nil if the answer is known or a request is in flight.
  private func ask(at seconds: Double, isSilent: Bool = false) -> ProbeID? {
    guard case .ask(let id) = state.want(now: at(seconds), isSilent: isSilent, { _ in }) else {
      return nil
    }
    return id
  }

  private func isKnown(at seconds: Double, isSilent: Bool = false) -> Bool {
    guard case .known(.success) = state.want(now: at(seconds), isSilent: isSilent, { _ in }) else {
      return false
    }
    return true
  }

  @Test func oneQuestionAnswersAllWhoAsk() throws {
    let id = try #require(ask(at: 0))
    #expect(ask(at: 1) == nil)
    let conclusion = try #require(answer(id, try names(), now: at(2)))
    #expect(conclusion.waiters.count == 2)
    #expect(answer(id, try names(), now: at(2)) == nil)
    #expect(isKnown(at: 61))
    #expect(ask(at: 63) != nil)
  }

  @Test("The last failure is known until the server answers, whether there are names or not")
  func failureForTheStatus() throws {
    let first = try #require(ask(at: 0))
    #expect(state.failure == nil)
    #expect(delay(of: first, FileError(.unreachable, "refused"), at: 0) != nil)
    // While the question is repeated.
    #expect(state.failure?.reason == "refused")
    _ = answer(first, try names(), now: at(1))
    #expect(state.failure == nil)
    let second = try #require(ask(at: 100))
    _ = fail(second, FileError(.timedOut, "silent"), now: at(100))
    #expect(state.failure?.reason == "silent")
    #expect(state.names != nil)
    let third = try #require(ask(at: 200))
    _ = fail(third, FileError(.missing, "HTTP 404"), now: at(200))
    #expect(state.failure?.reason == "HTTP 404")
    #expect(state.names == nil)
  }

  @Test func aServerThatSaysNoTakesTheNamesAway() throws {
    for code in [FileError.Code.missing, .denied] {
      let id = try #require(ask(at: 0))
      _ = answer(id, try names(), now: at(0))
      let second = try #require(ask(at: 100))
      let conclusion = try #require(fail(second, FileError(code, ""), now: at(100)))
      guard case .failure(let error) = conclusion.result else {
        Issue.record("the names are still there")
        return
      }
      #expect(error.code == code)
      #expect(ask(at: 100.5) == nil)
      state = ListingState(settings: .init(timeToLive: .seconds(60), timeout: .seconds(30)))
    }
  }

  @Test func aServerThatCannotBeAskedDoesNot() throws {
    let id = try #require(ask(at: 0))
    _ = answer(id, try names(), now: at(0))
    let second = try #require(ask(at: 100))
    let error = FileError(.unreachable, "gone")
    // With names there is no reason to retry.
    #expect(delay(of: second, error, at: 100) == nil)
    let conclusion = try #require(fail(second, error, now: at(100)))
    guard case .success = conclusion.result else {
      Issue.record("the names are gone")
      return
    }
    #expect(conclusion.refreshFailure?.code == .unreachable)
    #expect(isKnown(at: 104))
    #expect(ask(at: 106) != nil)
  }

  @Test func aSilentServerIsNotWaitedForWhereThereAreNames() throws {
    let id = try #require(ask(at: 0))
    _ = answer(id, try names(), now: at(0))
    #expect(isKnown(at: 100, isSilent: true))
    #expect(state.expired(now: at(1000)) == nil)
    let second = try #require(ask(at: 100))
    #expect(state.expired(now: at(104)) == nil)
    #expect(state.expired(now: at(106)) == second)
  }

  @Test func aPassingFailureIsTriedAgainUntilTheDeadline() throws {
    let id = try #require(ask(at: 0))
    #expect(delay(of: id, FileError(.unavailable, ""), at: 1) != nil)
    #expect(delay(of: id, FileError(.unavailable, ""), at: 29.99) == nil)
    #expect(delay(of: id, FileError(.unreachable, ""), at: 3) != nil)
    #expect(delay(of: id, FileError(.unreachable, ""), at: 6) == nil)
    #expect(delay(of: id, FileError(.refused, ""), at: 3) == nil)
    #expect(state.expired(now: at(29)) == nil)
    state.postpone(by: .seconds(10))
    #expect(state.expired(now: at(31)) == nil)
    #expect(state.expired(now: at(41)) == id)
  }

  @Test func whatIsConfirmedIsBelievedAnew() throws {
    let id = try #require(ask(at: 0))
    _ = answer(id, try names(tag: "t"), now: at(0))
    #expect(state.entityTag == EntityTag(opaque: "t"))
    let second = try #require(ask(at: 100))
    #expect(answer(second, nil, now: at(100)) != nil)
    #expect(isKnown(at: 159))
    // Not while the server may confirm that they are unchanged.
    let third = try #require(ask(at: 200))
    state.forget()
    #expect(answer(third, nil, now: at(200)) != nil)
    #expect(isKnown(at: 201))
    state.forget()
    #expect(state.entityTag == nil)
    #expect(ask(at: 201) != nil)
  }

  // The macros cannot call mutating methods.

  private func answer(
    _ id: ProbeID, _ names: ListedNames?, now: ContinuousClock.Instant
  ) -> ListingState.Conclusion? {
    state.answered(id, names, now: now)
  }

  private func fail(
    _ id: ProbeID, _ error: FileError, now: ContinuousClock.Instant
  ) -> ListingState.Conclusion? {
    state.failed(id, error, now: now)
  }

  private func delay(
    of id: ProbeID, _ error: FileError, at seconds: Double
  ) -> Duration? {
    state.delay(
      after: error, of: id, limit: .seconds(2), retryAfter: nil, policy: RetryPolicy(),
      random: 0.5, now: at(seconds))
  }
}
