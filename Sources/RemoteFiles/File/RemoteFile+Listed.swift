public import DirectoryListing
internal import Synchronization

/// How a file looks that is known from a listing only.
///
/// The server is asked when the file is opened. When it then says the same length, the version that it
/// describes has this number, so that tools which look before and after they open see one file.
public struct ListedAppearance: Sendable {
  public let id: VersionID
  public let facts: ListedFacts
}

/// What a listing says of a file, until the file itself is looked at.
extension RemoteFile {
  /// Takes what a listing says of the file now; nil where it says nothing.
  func note(_ facts: ListedFacts?) {
    state.withLock { state in
      guard state.current == nil, state.listed?.facts != facts else { return }
      state.listed = facts.map { FileKnowledge.Listed(facts: $0) }
    }
  }

  /// How the file is shown without a question to the server; nil where more is known of it, or less.
  ///
  /// Answers after the first look into the cache, as ``resolve(_:)`` does.
  public func appearance(_ answer: @escaping @Sendable (ListedAppearance?) -> Void) {
    afterLook { [self] in
      answer(
        state.withLock { state in
          guard let listed = state.listed, state.current == nil, !state.mustAsk else { return nil }
          let id = listed.id ?? environment.nextVersionID()
          state.listed?.id = id
          return ListedAppearance(id: id, facts: listed.facts)
        })
    }
  }
}
