import MountStatus

/// The order of the files on the screen.
package enum SortOrder: String, CaseIterable, Sendable {
  /// Files with waiting reads come first, then files in transfer, then failed ones.
  case activity
  case name
  /// The largest first.
  case size
  /// The most complete first.
  case percent

  /// The order after this one, the first after the last.
  var next: SortOrder {
    let all = Self.allCases
    let index = all.firstIndex(of: self) ?? 0
    return all[(index + 1) % all.count]
  }
}

/// Selects and orders the files on the screen.
struct FileSelection: Sendable, Equatable {
  var order = SortOrder.activity
  /// Shows only names that contain this text, without case.
  var filter = ""
  var onlyActive = false

  /// The indices in `files` of the files to show, in order.
  ///
  /// Equal files stay in the order of the list.
  func indices(of files: [FileStatus]) -> [Int] {
    let pattern = Array(filter.lowercased().utf8)
    let shown = files.indices.filter { index in
      (!onlyActive || files[index].isActive)
        && (pattern.isEmpty || contains(files[index].name, pattern))
    }
    switch order {
    case .activity:
      return sorted(shown) { files[$0].activityRank }
    case .name:
      return shown.sorted { files[$0].name < files[$1].name }
    case .size:
      // The complement reverses the order for every number.
      return sorted(shown) { ~(files[$0].length ?? -1) }
    case .percent:
      return sorted(shown) { -files[$0].fraction }
    }
  }

  /// Calculates each key once.
  private func sorted<Value: Comparable>(_ indices: [Int], by value: (Int) -> Value) -> [Int] {
    indices.map { (value($0), $0) }.sorted { $0 < $1 }.map(\.1)
  }

  private func contains(_ name: String, _ pattern: [UInt8]) -> Bool {
    let text = Array(name.lowercased().utf8)
    guard pattern.count <= text.count else { return false }
    return (0...(text.count - pattern.count)).contains { start in
      text[start] == pattern[0] && text[start..<(start + pattern.count)].elementsEqual(pattern)
    }
  }
}

extension FileStatus {
  /// How urgently a user wants to see it: 0 first.
  var activityRank: Int {
    if !waitingReads.isEmpty || state == .waiting { return 0 }
    switch state {
    case .waiting: return 0
    case .downloading, .streaming: return 1
    case .prefetching: return connections > 0 ? 1 : 2
    case .failed, .stale, .offline: return 3
    case .idle, .paused: return 4
    case .complete: return 5
    case .unknown: return 6
    }
  }

  /// Whether the file is in transfer, or about to be.
  var isActive: Bool { activityRank <= 2 || connections > 0 }

  /// How much of it is cached, 0 to 1; −1 while the length is unknown.
  var fraction: Double {
    guard let length else { return -1 }
    return length > 0 ? min(1, max(0, Double(cachedBytes) / Double(length))) : 1
  }
}
