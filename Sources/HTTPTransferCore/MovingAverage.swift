extension Double? {
  /// Takes `sample` into the moving average that this is.
  package mutating func average(in sample: Double) {
    self = map { $0 * 0.7 + sample * 0.3 } ?? sample
  }
}
