import Foundation
import Glibc
import SeededRandom

/// A random sequence of operations on one mount, compared with a model after each step.
///
/// For the bytes, the model is a function of (file, version, offset). For everything else, it is a
/// history of the server's behaviour.
final class ModelRun {
  /// The current operation of an agent.
  private struct Operation {
    let step: ModelStep
    let start: Double
    /// The number that an opened handle will get.
    let number: Int
  }

  private static let readTimeout = 3
  private static let agentCount = 3
  private static let options = [
    "--read-timeout", "\(readTimeout)", "--revalidate", "0", "--cache-size", "3M",
  ]

  private let seed: UInt64
  private let sandbox: Sandbox
  private let origin: ModelOrigin
  private let judge = ModelJudge(callLimit: Double(readTimeout) + 5)
  private let beginning = ContinuousClock.now
  private var generator: SeededGenerator
  private var files: [ModelFile] = []
  private var queries: [String] = []
  private var handles: [ModelJudge.Handle] = []
  private var agents: [ReaderAgent] = []
  private var operations: [Operation?]
  private var openCount = 0
  private var mount: Mount
  private var isKilled = false
  /// The epoch that opens of each file have shown, and the time.
  private var newest: [(epoch: Int, time: Double)]
  /// The events so far, for a report.
  private(set) var log: [String] = []
  /// The number of judged operations.
  private(set) var judgedCount = 0

  /// Mounts the files of the model.
  init(seed: UInt64) throws {
    self.seed = seed
    generator = SeededGenerator(seed: seed)
    sandbox = try Sandbox()
    origin = try ModelOrigin(directory: sandbox.directory)
    let lengths: [Int64] = [40_000, 300_000, 1_500_000, 3_000_000, 700_000]
    queries = ["", "validators=weak", "validators=date", "", "validators=etag"]
    files = lengths.enumerated().map { index, length in
      ModelFile(name: "f\(index).bin", seed: seed &* 100 &+ UInt64(index), firstLength: length)
    }
    newest = files.map { _ in (0, 0) }
    operations = Array(repeating: nil, count: Self.agentCount)
    for file in files {
      try origin.set(file.path, ["version": "1", "length": "\(file.length(of: 1))"])
    }
    let list = try sandbox.write(
      Self.list(of: files, queries, port: origin.port, Array(files.indices)), to: "model.txt")
    mount = try sandbox.mount(source: list, options: Self.options)
    agents = try (0..<Self.agentCount).map { _ in try ReaderAgent() }
  }

  deinit {
    for agent in agents { agent.kill() }
  }

  private static func list(
    of files: [ModelFile], _ queries: [String], port: UInt16, _ indices: [Int]
  ) -> String {
    indices.map { index in
      let file = files[index]
      return "http://127.0.0.1:\(port)\(file.path)?seed=\(file.seed)&\(queries[index])\n"
    }.joined()
  }

  private var now: Double { (ContinuousClock.now - beginning).seconds }

  private func note(_ text: String) {
    log.append(String(format: "%8.3f  ", now) + text)
  }

  // MARK: Steps

  /// Makes `stepCount` random steps, then heals all faults and reads every file to its end.
  ///
  /// - Throws: ``ModelViolation`` for the first broken rule.
  func run(stepCount: Int) throws {
    for _ in 0..<stepCount {
      try perform(.next(in: situation, using: &generator))
      try collect(within: .zero)
      try checkDaemon()
    }
    try finish()
  }

  private var situation: ModelStep.Situation {
    ModelStep.Situation(
      fileCount: files.count,
      lengths: files.map { $0.length(of: $0.version) }, handles: handles.map(\.number),
      isOriginRunning: origin.isRunning,
      hasFault: files.contains { file in
        file.faults.contains { $0.end == .infinity && $0.kind != .offline }
      })
  }

  private func perform(_ step: ModelStep) throws {
    switch step {
    case .open, .read, .readAll, .map, .length, .close: return try start(step)
    default: note("\(step)")
    }
    switch step {
    case .change(let file):
      let highest = files[file].epochs.map(\.version).max() ?? 0
      try change(file, to: highest + 1)
    case .rollBack(let file):
      let others = Set(files[file].epochs.map(\.version)).subtracting([files[file].version])
      if let version = others.sorted().randomElement(using: &generator) {
        try change(file, to: version)
      }
    case .fail(let file, let kind):
      let start = now
      try origin.set(
        files[file].path, ModelFault.noParameters.merging(kind.parameters) { $1 })
      // Earlier faults no longer apply.
      files[file].heal(until: now)
      files[file].fail(kind, from: start)
    case .heal: try heal()
    case .stopOrigin:
      let start = now
      for index in files.indices { files[index].fail(.offline, from: start) }
      origin.stop()
    case .restartOrigin: try restartOrigin()
    case .reload(let kept): try reload(kept)
    case .kill: try kill()
    case .remount: try remount()
    case .pause(let milliseconds): EndToEndTests.pause(for: .milliseconds(milliseconds))
    case .open, .read, .readAll, .map, .length, .close: break
    }
  }

  private func change(_ file: Int, to version: UInt64) throws {
    let start = now
    try origin.set(
      files[file].path,
      ["version": "\(version)", "length": "\(files[file].length(of: version))"])
    files[file].change(to: version, from: start, until: now)
  }

  private func heal() throws {
    for index in files.indices where files[index].faults.contains(where: { $0.end == .infinity }) {
      try origin.set(files[index].path, ModelFault.noParameters)
      files[index].heal(until: now)
    }
  }

  private func restartOrigin() throws {
    guard !origin.isRunning else { return }
    try origin.restart()
    for index in files.indices { files[index].heal(until: now, only: .offline) }
  }

  private func reload(_ kept: [Int]) throws {
    let start = now
    try sandbox.write(
      Self.list(of: files, queries, port: origin.port, kept), to: "model.txt")
    mount.process.signal(SIGHUP)
    let names = kept.map { files[$0].name }
    let lister = try ReaderAgent()
    defer { lister.kill() }
    var seen: [String] = []
    _ = try Deadline(after: .seconds(3)).wait(every: .milliseconds(10)) {
      try lister.start("list \(mount.mountpoint)")
      if case .names(let shown)? = try lister.reply(within: .seconds(3))?.answer { seen = shown }
      return seen == names
    }
    guard seen == names else { throw ModelViolation("lists \(seen) 3 s after the reload") }
    for index in files.indices {
      files[index].list(kept.contains(index), from: now, until: start)
      newest[index] = (0, now)
    }
  }

  private func kill() throws {
    isKilled = true
    try mount.crash()
    try collect(within: .seconds(10))
    try mountAgain()
  }

  private func remount() throws {
    try collect(within: .seconds(30))
    for agent in agents { agent.kill() }
    try endMount()
    try mountAgain()
  }

  /// Ends the daemon in the regular way, by a signal.
  ///
  /// An unmount is not enough: if a mount namespace of another test has a copy of the mount, the
  /// daemon rightly continues.
  private func endMount() throws {
    mount.process.signal(SIGTERM)
    guard let ending = mount.process.wait(within: .seconds(10)) else {
      throw ModelViolation("the daemon still runs 10 s after SIGTERM")
    }
    guard ending == .exited(0) else { throw ModelViolation("the daemon ended with \(ending)") }
    guard !mount.isMounted else { throw ModelViolation("still mounted after SIGTERM") }
  }

  /// Mounts the list on the same cache; all handles are gone.
  private func mountAgain() throws {
    for agent in agents { agent.kill() }
    handles = []
    operations = operations.map { _ in nil }
    agents = try (0..<Self.agentCount).map { _ in try ReaderAgent() }
    mount = try sandbox.mount(source: sandbox.path("model.txt"), options: Self.options)
    isKilled = false
    for index in newest.indices { newest[index] = (0, now) }
  }

  // MARK: Readers

  private func handle(_ number: Int) -> ModelJudge.Handle? {
    handles.first { $0.number == number }
  }

  /// Starts an operation; half of them may end while other steps happen.
  private func start(_ step: ModelStep) throws {
    let agent: Int
    let text: String
    switch step {
    case .open(let file):
      agent = Int.random(in: 0..<Self.agentCount, using: &generator)
      openCount += 1
      text = "open \(openCount) \(mount.path(files[file].name))"
    case .read(let number, let offset, let count):
      agent = handle(number)?.agent ?? 0
      text = "read \(number) \(offset) \(count)"
    case .readAll(let number, let count):
      agent = handle(number)?.agent ?? 0
      text = "all \(number) \(count)"
    case .map(let number, let offset, let count):
      agent = handle(number)?.agent ?? 0
      text = "map \(number) \(offset) \(count)"
    case .length(let number):
      agent = handle(number)?.agent ?? 0
      text = "length \(number)"
    case .close(let number):
      agent = handle(number)?.agent ?? 0
      text = "close \(number)"
    default: return
    }
    let number = openCount
    if operations[agent] != nil { try collect(agent, within: .seconds(30)) }
    // A handle whose close was in flight is gone by now.
    if case .open = step {} else if !isOpen(step) { return }
    note("agent \(agent): \(text)")
    operations[agent] = Operation(step: step, start: now, number: number)
    try agents[agent].start(text)
    if Bool.random(using: &generator) { try collect(agent, within: .seconds(30)) }
  }

  private func isOpen(_ step: ModelStep) -> Bool {
    switch step {
    case .read(let number, _, _), .readAll(let number, _), .map(let number, _, _),
      .length(let number), .close(let number):
      handle(number) != nil
    default: true
    }
  }

  /// Judges the answers of all operations that end within `limit`.
  ///
  /// Longer ones stay in flight, unless the limit should be enough.
  private func collect(within limit: Duration) throws {
    for agent in agents.indices where operations[agent] != nil {
      try collect(agent, within: limit)
    }
  }

  private func collect(_ agent: Int, within limit: Duration) throws {
    guard let operation = operations[agent] else { return }
    guard let reply = try agents[agent].reply(within: limit) else {
      if limit == .zero { return }
      throw ModelViolation("no answer within \(limit) to \(operation.step)")
    }
    operations[agent] = nil
    note("agent \(agent): → \(reply.answer) in \(reply.seconds) s")
    if reply.seconds > judge.callLimit {
      throw ModelViolation("\(operation.step) took \(reply.seconds) s")
    }
    try check(reply.answer, to: operation, agent: agent, in: operation.start...now)
    judgedCount += 1
  }

  private func check(
    _ answer: ReaderAgent.Answer, to operation: Operation, agent: Int,
    in period: ClosedRange<Double>
  ) throws {
    switch operation.step {
    case .open(let file):
      // The epoch that an open showed which ended before this one began.
      let known = newest[file].time < operation.start ? newest[file].epoch : 0
      let epoch = try judge.judgeOpen(
        answer, of: files[file], in: period, newest: known, isOriginSilent: isOriginSilent(period),
        isKilled: isKilled
      ).get()
      guard let epoch, case .opened = answer else { return }
      if epoch > newest[file].epoch { newest[file] = (epoch, now) }
      handles.append(
        ModelJudge.Handle(
          number: operation.number, agent: agent, file: file,
          version: files[file].epochs[epoch].version))
    case .read(let number, let offset, let count), .map(let number, let offset, let count):
      try checkRead(answer, number, at: offset, count, in: period)
    case .readAll(let number, _):
      try checkRead(answer, number, at: 0, nil, in: period)
    case .length(let number):
      guard let handle = handle(number) else { return }
      let length = files[handle.file].length(of: handle.version)
      if answer != .length(length), !isKilled {
        throw ModelViolation("fstat gives \(answer), the handle's version has \(length)")
      }
    case .close(let number): handles.removeAll { $0.number == number }
    default: break
    }
  }

  private func checkRead(
    _ answer: ReaderAgent.Answer, _ number: Int, at offset: Int64, _ count: Int?,
    in period: ClosedRange<Double>
  ) throws {
    guard let handle = handle(number) else { return }
    let violation = judge.judgeRead(
      answer, of: handle, at: offset, count, file: files[handle.file], in: period,
      isKilled: isKilled)
    if let violation { throw violation }
  }

  /// Whether the server has been silent on a request, so opens do not ask it.
  private func isOriginSilent(_ period: ClosedRange<Double>) -> Bool {
    files.contains { file in
      file.faults(felt: period) { $0.openMemory }.contains(.stallHead)
    }
  }

  private func checkDaemon() throws {
    guard mount.process.isRunning else {
      throw ModelViolation(
        "the daemon has ended: \(String(describing: mount.process.ending)), "
          + mount.process.standardError)
    }
  }

  // MARK: Completion

  /// Reads every current file whole, without faults.
  private func finish() throws {
    note("finish")
    try collect(within: .seconds(30))
    try restartOrigin()
    try heal()
    try reload(Array(files.indices))
    // New names may be unknown for a moment, and failures are cached.
    pause(for: .milliseconds(1600))
    _ = Deadline(after: .seconds(8)).wait(every: .milliseconds(50)) {
      files.allSatisfy { file in
        file.faults(felt: now...now) { max($0.openMemory, $0.readMemory) }.isEmpty
      }
    }
    for index in files.indices {
      try start(.open(file: index))
      try collect(within: .seconds(30))
      guard let handle = handles.last, handle.file == index else {
        throw ModelViolation("\(files[index].name) cannot be opened at the end")
      }
      try start(.readAll(handle: handle.number, pieceByteCount: 131_072))
      try collect(within: .seconds(30))
    }
    try checkDaemon()
    _ = try mount.status()
    for agent in agents { agent.kill() }
    try endMount()
  }
}
