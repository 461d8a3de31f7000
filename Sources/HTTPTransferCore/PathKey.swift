/// A name or a path as a key: two are one where their bytes are the same, as to the kernel and to servers.
///
/// To Swift `é` of one scalar and `é` of two are one text; to everybody else they are two names.
package struct PathKey: Hashable, Comparable {
  package let text: String

  package init(_ text: some StringProtocol) { self.text = String(text) }

  package static func == (one: Self, other: Self) -> Bool {
    one.text.utf8.elementsEqual(other.text.utf8)
  }

  package static func < (one: Self, other: Self) -> Bool {
    one.text.utf8.lexicographicallyPrecedes(other.text.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}
