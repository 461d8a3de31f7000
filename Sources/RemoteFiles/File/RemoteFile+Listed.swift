package import DirectoryListing
internal import Synchronization

/// How a file looks that is known only from a listing.
///
/// The server is asked when the file is opened. If it then reports the same length, the version
/// that it describes gets this number, so that tools which look before and after they open see one
/// file.
package struct ListedAttributes: Sendable {
  package let id: VersionID
  package let facts: ListedFacts
}

/// What a listing says about a file until the file itself is looked at.
extension RemoteFile {
  /// Records what a listing says about the file now; nil if it says nothing.
  func note(_ facts: ListedFacts?) {
    state.withLock { state in
      guard state.current == nil, state.listed?.facts != facts else { return }
      state.listed = facts.map { FileKnowledge.Listed(facts: $0) }
    }
  }

  /// The appearance of the file without a question to the server; nil if more is known about it, or
  /// less.
  ///
  /// Answers after the first look into the cache, as ``resolve(by:_:)`` does.
  package func appearance(_ answer: @escaping @Sendable (ListedAttributes?) -> Void) {
    afterLook { [self] in
      answer(
        state.withLock { state in
          guard let listed = state.listed, state.current == nil, !state.mustAsk else { return nil }
          let id = listed.id ?? environment.nextVersionID()
          state.listed?.id = id
          return ListedAttributes(id: id, facts: listed.facts)
        })
    }
  }
}
