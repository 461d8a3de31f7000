import TextFormat

/// Shortens the names of several files where they are equal, so that they stay different.
package struct NameElision: Equatable {
  /// How many characters all names begin and end with.
  private let prefixCount: Int
  private let suffixCount: Int
  private let ellipsis: String

  /// - Parameters:
  ///   - names: all names that are shown together, as they are shown.
  ///   - ellipsis: stands for what is left out.
  package init(_ names: [String], ellipsis: String) {
    self.ellipsis = ellipsis
    guard let first = names.first, names.count > 1 else {
      (prefixCount, suffixCount) = (0, 0)
      return
    }
    var prefix = first[...]
    var suffix = first[...]
    for name in names.dropFirst() {
      prefix = prefix.prefix(zip(prefix, name).prefix { $0 == $1 }.count)
      suffix = suffix.suffix(zip(suffix.reversed(), name.reversed()).prefix { $0 == $1 }.count)
    }
    prefixCount = prefix.count
    suffixCount = min(suffix.count, (names.map(\.count).min() ?? 0) - prefix.count)
  }

  /// `name` in at most `width` columns.
  package func shortened(_ name: String, to width: Int) -> String {
    guard displayWidth(name) > width else { return name }
    let different = name.dropFirst(prefixCount).dropLast(suffixCount)
    let mark = displayWidth(ellipsis)
    // One mark at the beginning, and the end of the name.
    if mark + displayWidth(String(name.dropFirst(prefixCount))) <= width {
      var tail = name.dropFirst(prefixCount)
      while tail.startIndex > name.startIndex {
        let longer = name[name.index(before: tail.startIndex)...]
        guard mark + displayWidth(String(longer)) <= width else { break }
        tail = longer
      }
      return ellipsis + tail
    }
    if prefixCount > mark, 2 * mark + displayWidth(String(different)) <= width, suffixCount > mark {
      return cutAtEnd(
        ellipsis + name.dropFirst(prefixCount), to: width, ellipsis: ellipsis)
    }
    return cutInMiddle(name, to: width, ellipsis: ellipsis)
  }
}
