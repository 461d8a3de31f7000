internal import AccessTrace

/// When the operations of a trace begin in a replay.
///
/// Each begins after the operation that it followed in the trace, and after the same pause. The
/// program spent the pause on its own work; the replay decides how long operations take.
struct ReplaySchedule {
  struct Step {
    let record: TraceRecord
    /// The steps that begin when this one is done, each after a pause in seconds.
    var followers: [(step: Int, pause: Double)] = []
  }

  private(set) var steps: [Step]
  /// The steps without a predecessor, and when they begin.
  private(set) var initial: [(step: Int, pause: Double)] = []

  init(_ trace: AccessTrace) {
    let records = trace.records.sorted { $0.start < $1.start }
    steps = records.map { Step(record: $0) }
    let byEnd = records.indices.sorted { records[$0].end < records[$1].end }
    let origin = records.first?.start ?? 0
    var ended = 0
    for index in records.indices {
      while ended < byEnd.count, records[byEnd[ended]].end <= records[index].start,
        byEnd[ended] < index
      {
        ended += 1
      }
      if ended > 0 {
        let before = byEnd[ended - 1]
        steps[before].followers.append((index, records[index].start - records[before].end))
      } else {
        initial.append((index, records[index].start - origin))
      }
    }
  }
}
