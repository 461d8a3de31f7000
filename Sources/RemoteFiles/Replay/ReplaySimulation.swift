package import AccessTrace
internal import HTTPTransferCore

/// Replays a trace against the planner of a mount, over a simulated network.
///
/// It shows what would be requested, and how long reads would wait. It is deterministic, and
/// independent of real time. The network has round trips and rates; the server serves ranges; the
/// cache is empty at the beginning.
package struct ReplaySimulation {
  private let network: ReplayNetwork
  private let settings: FileSettings
  private let schedule: ReplaySchedule
  /// The lengths of the files; if unknown, the end of the last byte that was read.
  private let lengths: [String: Int64]
  /// The files of the handles.
  private let names: [UInt64: String]
  private let origin = ContinuousClock.now
  /// Seconds since the beginning.
  private var now = 0.0
  private var figures = ReplayFigures()
  private var files: [String: SimulatedFile] = [:]
  /// Steps that begin at a known time.
  private var pending: [(step: Int, time: Double)] = []
  private var flows: [Flow] = []
  private var idleConnectionCount = 0
  private var doneCount = 0

  /// A file, from its first probe on.
  private struct SimulatedFile {
    var state: VersionState
    var confirmedAt: Double
    var wanted = ExtentSet()
  }

  /// A request whose answer is awaited or arriving.
  private struct Flow {
    enum Purpose {
      /// An open waits for the head.
      case probe(step: Int, since: Double)
      /// The bytes of a segment up to here.
      case segment(SegmentID, end: Int64)
    }
    let name: String
    let purpose: Purpose
    /// When the first byte arrives.
    let firstByteAt: Double
    /// The fraction of a byte that has arrived.
    var fraction = 0.0
  }

  /// The smallest step of time while bytes flow, in seconds.
  private static let quantum = 0.001

  /// Creates a simulation.
  ///
  /// - Parameters:
  ///   - trace: the trace to replay.
  ///   - network: the network.
  ///   - connections: the connections for read-ahead of each file; nil for as many as prove best.
  package init(_ trace: AccessTrace, over network: ReplayNetwork, connections: Int? = nil) {
    self.network = network
    settings = FileSettings(connections: connections)
    schedule = ReplaySchedule(trace)
    pending = schedule.initial.map { ($0.step, $0.pause) }
    var names: [UInt64: String] = [:]
    var lengths: [String: Int64] = [:]
    for record in trace.records {
      guard case .open(let name, let length) = record.operation else { continue }
      names[record.handle] = name
      if let length { lengths[name] = length }
    }
    let known = lengths
    for record in trace.records {
      guard case .read(let offset, let byteCount) = record.operation, byteCount > 0,
        let name = names[record.handle], known[name] == nil
      else { continue }
      lengths[name] = max(lengths[name] ?? 0, offset + byteCount)
    }
    self.names = names
    self.lengths = lengths
  }

  /// Replays the trace.
  ///
  /// - Returns: the cost.
  package mutating func run() -> ReplayFigures {
    while let time = nextTime {
      flow(until: time)
      begin()
    }
    figures.unansweredCount = schedule.steps.count - doneCount
    figures.wantedByteCount = files.values.reduce(0) { $0 + $1.wanted.byteCount }
    return figures
  }

  /// The time of the next event; nil if there is none, or if only read-ahead without a reader is
  /// left.
  private var nextTime: Double? {
    guard doneCount < schedule.steps.count else { return nil }
    let times = pending.map(\.time) + flows.map { max($0.firstByteAt, now + Self.quantum) }
    return times.min().map { max($0, now) }
  }

  // MARK: Steps

  /// Begins every step whose time has come.
  private mutating func begin() {
    while let index = pending.indices.filter({ pending[$0].time <= now }).min(by: {
      (pending[$0].time, pending[$0].step) < (pending[$1].time, pending[$1].step)
    }) {
      begin(pending.remove(at: index).step)
    }
  }

  private mutating func begin(_ step: Int) {
    let record = schedule.steps[step].record
    guard let name = names[record.handle] else { return end(step) }
    switch record.operation {
    case .close: end(step)
    case .open: open(name, step)
    case .read(let offset, let byteCount):
      figures.readCount += 1
      read(name, offset..<offset + byteCount, step)
    }
  }

  private mutating func end(_ step: Int, after waited: Double = 0) {
    doneCount += 1
    figures.elapsedSeconds = now
    if waited > 0 {
      figures.waitCount += 1
      figures.waitedSeconds += waited
    }
    for (follower, pause) in schedule.steps[step].followers {
      pending.append((follower, now + pause))
    }
  }

  private mutating func open(_ name: String, _ step: Int) {
    let interval = settings.revalidationInterval / .seconds(1)
    if let file = files[name], now - file.confirmedAt <= interval { return end(step) }
    send(name, .probe(step: step, since: now))
  }

  private mutating func read(_ name: String, _ asked: ByteRange, _ step: Int) {
    guard var file = files[name] else { return end(step) }
    defer { files[name] = file }
    let range = file.state.clamped(asked)
    figures.readByteCount += range.byteCount
    file.wanted.insert(range)
    file.state.note(asked, now: instant)
    var actions = VersionActions()
    if case .absent = file.state.attempt(asked, now: instant) {
      // A step is at most one read.
      let read = ParkedRead(
        id: ReadID(rawValue: step), range: range, since: instant,
        deadline: instant + settings.readTimeout)
      file.state.park(read, into: &actions)
    } else {
      end(step)
    }
    file.state.plan(now: instant, into: &actions)
    perform(actions, name)
  }

  private var instant: ContinuousClock.Instant { origin + .seconds(now) }

  // MARK: Line

  private mutating func send(_ name: String, _ purpose: Flow.Purpose) {
    figures.requestCount += 1
    var delay = network.roundTrip
    if idleConnectionCount > 0 {
      idleConnectionCount -= 1
    } else {
      figures.connectionCount += 1
      delay += network.roundTrip
    }
    flows.append(Flow(name: name, purpose: purpose, firstByteAt: now + delay))
  }

  private mutating func perform(_ actions: VersionActions, _ name: String) {
    for read in actions.wakes {
      end(read.id.rawValue, after: (instant - read.since) / .seconds(1))
    }
    for segment in actions.starts { send(name, .segment(segment.id, end: segment.end)) }
  }

  /// Lets bytes flow until `end`.
  private mutating func flow(until end: Double) {
    let seconds = end - now
    now = end
    let current = flows
    let flowingCount = current.count { $0.firstByteAt <= end }
    guard flowingCount > 0 else { return }
    let rate = min(network.connectionRate, network.totalRate / Double(flowingCount))
    flows = current.filter { $0.firstByteAt > end }
    for var flow in current where flow.firstByteAt <= end {
      let amount = flow.fraction + rate * min(seconds, end - flow.firstByteAt)
      flow.fraction = amount - amount.rounded(.down)
      if take(Int64(amount), &flow) { flows.append(flow) }
    }
  }

  /// Takes `byteCount` bytes of an answer.
  ///
  /// - Returns: whether more bytes follow.
  private mutating func take(_ byteCount: Int64, _ flow: inout Flow) -> Bool {
    switch flow.purpose {
    case .probe(let step, let since):
      answerProbe(flow.name)
      idleConnectionCount += 1
      end(step, after: now - since)
      return false
    case .segment(let id, let requestedEnd):
      return take(byteCount, of: flow.name, id, requestedEnd: requestedEnd)
    }
  }

  /// Answers a probe: its head brings the length, and its body the file's first bytes.
  private mutating func answerProbe(_ name: String) {
    if files[name] != nil {
      files[name]?.confirmedAt = now
      return
    }
    let length = lengths[name] ?? 0
    let first = 0..<min(length, FileSettings.firstProbeByteCount)
    var state = VersionState(
      length: length, extents: ExtentSet([first]), connections: settings.connections)
    state.recordRoundTrip(network.roundTrip)
    figures.fetchedByteCount += first.byteCount
    files[name] = SimulatedFile(state: state, confirmedAt: now)
  }

  private mutating func take(
    _ byteCount: Int64, of name: String, _ id: SegmentID, requestedEnd: Int64
  ) -> Bool {
    guard var file = files[name], let segment = file.state.segments.first(where: { $0.id == id })
    else { return false }
    let arrived =
      segment.position..<min(max(segment.position, segment.end), segment.position + byteCount)
    figures.fetchedByteCount += arrived.byteCount
    var actions = VersionActions()
    let advice = file.state.advance(id, to: arrived.upperBound, now: instant)
    if !arrived.isEmpty {
      // The network thread has no other work here: it was idle all the time.
      file.state.stored(
        id, arrived, present: [arrived], idle: now, now: instant, into: &actions)
    }
    let end = advice?.end ?? arrived.upperBound
    let isDone = arrived.upperBound >= end
    if isDone {
      file.state.removeSegment(id)
      file.state.plan(now: instant, into: &actions)
      // If more bytes would follow, which are not wanted, the connection is closed.
      if end >= requestedEnd { idleConnectionCount += 1 }
    }
    files[name] = file
    perform(actions, name)
    return !isDone
  }
}
