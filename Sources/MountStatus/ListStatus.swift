internal import TextFormat

/// What became of reading the list of a mount again.
package struct ListStatus: Sendable, Hashable, Decodable {
  /// Whether the sources can be read again: one of them is a list file.
  package var isReadable: Bool

  /// How often the list was read again, with success or without.
  package var reloads: Int

  /// Whether it is being read again, or will be soon.
  package var isReloading: Bool

  /// Why the last reload changed nothing, in one line; nil after a success.
  package var error: String?

  package init(
    isReadable: Bool = false, reloads: Int = 0, isReloading: Bool = false, error: String? = nil
  ) {
    self.isReadable = isReadable
    self.reloads = reloads
    self.isReloading = isReloading
    self.error = error
  }

  enum CodingKeys: String, CodingKey {
    case isReadable = "readable"
    case reloads
    case isReloading = "reloading"
    case error
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(CodingKeys.isReadable, isReadable)
      writer.member(CodingKeys.reloads, reloads)
      writer.member(CodingKeys.isReloading, isReloading)
      writer.member(CodingKeys.error, error)
    }
  }

  /// The line of `.status` and of the live view about a list that was not read; control characters
  /// are not escaped.
  package var textLine: String? { error.map { "list not reloaded: \($0)" } }
}
