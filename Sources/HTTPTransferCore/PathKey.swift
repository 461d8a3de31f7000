/// A name or a path as a key: equal if the bytes are equal, as for the kernel and for servers.
///
/// Swift considers `é` of one scalar and `é` of two scalars equal; the kernel and servers do not.
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
