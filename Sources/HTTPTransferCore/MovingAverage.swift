extension Double? {
  /// Adds `sample` to this moving average.
  package mutating func average(in sample: Double) {
    self = map { $0 * 0.7 + sample * 0.3 } ?? sample
  }
}
