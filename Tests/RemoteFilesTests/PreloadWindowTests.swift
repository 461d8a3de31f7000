import Testing

@testable import RemoteFiles

/// The distance of look-ups in the cache ahead of a walk.
@Suite struct PreloadWindowTests {
  @Test(
    "Names that are looked up in order are looked into once, before their lookups, and not far ahead",
    arguments: [2, 3, 33, 64, 65, 1000])
  func inOrder(count: Int) {
    var ahead = PreloadWindow()
    #expect(ahead.names(from: 0, of: count).isEmpty)
    var end = 1
    for index in 1..<count {
      let names = ahead.names(from: index, of: count)
      if !names.isEmpty {
        #expect(names.lowerBound == end)
        end = names.upperBound
      }
      #expect(index < end && end <= min(count, index + PreloadWindow.distance))
    }
    #expect(end == count)
  }

  @Test(
    "Lookups out of order look at nothing else",
    arguments: [[5, 3, 9, 1, 0], [7, 7, 7], [0, 2, 4]])
  func outOfOrder(indices: [Int]) {
    var ahead = PreloadWindow()
    for index in indices { #expect(ahead.names(from: index, of: 10).isEmpty) }
  }

  @Test("A second walk, or one of fewer names, begins anew")
  func again() {
    var ahead = PreloadWindow()
    for count in [500, 500, 20, 500] {
      var seen: [Int] = []
      for index in 0..<count { seen += ahead.names(from: index, of: count) }
      #expect(seen == Array(1..<count))
    }
  }
}
