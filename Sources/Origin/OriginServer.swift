import FoundationEssentials
import Glibc
import OriginContent
import Synchronization

/// What all connections share: rules, counters, the log and the total rate.
final class OriginServer: Sendable {
  let log: RequestLog
  let statistics = Statistics()

  private let root: FileRoot?
  private let began = SystemCall.monotonicNanoseconds()
  private let state = Mutex(State())
  private let totalBucket = Mutex<TokenBucket?>(nil)

  private struct State {
    var rules = RuleSet()
    var histories: [String: History] = [:]
  }

  /// What happened to one resource, which is a path with a query.
  private struct History {
    var path: String
    var requests: Int64 = 0
    var faults: Int64 = 0
  }

  init(root: FileRoot?, log: RequestLog) {
    self.root = root
    self.log = log
  }

  /// The milliseconds from the start to a time of the monotonic clock in nanoseconds.
  func milliseconds(at time: Int64) -> Double { Double((time - began) / 1000) / 1000 }

  /// Carries out commands.
  ///
  /// A new fault starts with new counts: those of the paths that a rule concerns are forgotten.
  func apply(_ commands: [RuleSet.Command]) {
    state.withLock { state in
      for command in commands {
        state.rules.apply(command)
        switch command {
        case .clear: state.histories = [:]
        case .set(let rule):
          guard rule.parameters.keys.contains(where: { $0.hasPrefix("fault") || $0 == "status" })
          else { continue }
          state.histories = state.histories.filter { !rule.match.matches($0.value.path) }
        }
      }
    }
  }

  /// When bytes under the total rate may be sent, in nanoseconds of the monotonic clock.
  func reserve(_ byteCount: Int, ofTotalRate rate: Int64, now: Int64) -> Int64 {
    totalBucket.withLock { bucket in
      var current =
        bucket.flatMap { $0.bytesPerSecond == rate ? $0 : nil } ?? TokenBucket(bytesPerSecond: rate)
      let start = current.reserve(byteCount, now: now)
      bucket = current
      return start
    }
  }

  /// The plan of a request for a resource, and where its bytes come from.
  func plan(
    _ request: RequestHead, isFirstOnConnection: Bool
  ) -> (plan: ResponsePlan, source: ContentSource) {
    let now = SystemCall.wallClockSeconds()
    let rules = state.withLock { $0.rules }
    let parameters: ResponseParameters
    do {
      parameters = try ResponseParameters(
        values: rules.values(path: request.path, query: request.query))
    } catch {
      return (
        .message(
          400, "\(error.description)\n", request: request, now: now,
          closesConnection: request.hasBody), .none
      )
    }
    guard let (resource, source) = find(request.path, parameters) else {
      return (
        .message(
          404, "nothing at \(request.path)\n", request: request, now: now,
          closesConnection: request.hasBody), .none
      )
    }
    // Counting and planning are one step, so that exactly `fault-count` of parallel requests have
    // the fault.
    let plan = state.withLock { state in
      var history = state.histories[request.target] ?? History(path: request.path)
      history.requests += 1
      let maker = PlanMaker(
        request: request, parameters: parameters, resource: resource,
        context: PlanMaker.Context(
          requestNumber: history.requests, earlierFaults: history.faults,
          isFirstOnConnection: isFirstOnConnection, now: now))
      let plan = maker.plan()
      if plan.fault != nil { history.faults += 1 }
      state.histories[request.target] = history
      return plan
    }
    return (plan, source)
  }

  private func find(
    _ path: String, _ parameters: ResponseParameters
  ) -> (resource: Resource, source: ContentSource)? {
    if path.hasPrefix("/data/") {
      let name = path.split(separator: "/").last.map(String.init) ?? ""
      let seed = parameters.seed ?? OriginContent.seed(ofName: name)
      return (.generated(length: parameters.length, seed: seed), .generated(seed: seed))
    }
    if path.hasPrefix("/files/"), let file = root?.open(path.dropFirst("/files/".count)) {
      return (file.resource, .file(file))
    }
    return nil
  }

  /// Answers a request to a control resource; does not count.
  func controlPlan(_ request: RequestHead, body: [UInt8]) -> ResponsePlan {
    var plan = countedControlPlan(request, body: body)
    plan.isCounted = false
    return plan
  }

  private func countedControlPlan(_ request: RequestHead, body: [UInt8]) -> ResponsePlan {
    let now = SystemCall.wallClockSeconds()
    guard let resource = ControlResource(path: request.path) else {
      return .message(404, "", request: request, now: now)
    }
    guard request.method == resource.method else {
      return .message(
        405, "use \(resource.method)\n", request: request, fields: [("Allow", resource.method)],
        now: now)
    }
    var status = 200
    var contentType = "application/json"
    var text = "{}\n"
    switch resource {
    case .control:
      do {
        apply(try RuleSet.commands(json: body))
      } catch {
        status = 400
        text = json(["error": error.description])
      }
    case .log:
      awaitActiveRequests()
      contentType = "application/jsonl"
      text = log.text
    case .clearLog:
      awaitActiveRequests()
      log.clear()
      statistics.clear()
    case .statistics:
      awaitActiveRequests()
      text = json(statistics.snapshot)
    }
    return .message(status, text, contentType: contentType, request: request, now: now)
  }

  /// Gives requests a moment to end: a client that has a whole response may ask for the log before
  /// the thread that sent it has logged it.
  ///
  /// Responses that take longer are not waited for.
  private func awaitActiveRequests() {
    for _ in 0..<100 where statistics.activeRequests > 0 { usleep(2000) }
  }

  private func json(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // Numbers and strings only: it cannot fail.
    let data = (try? encoder.encode(value)) ?? Data("{}".utf8)
    return String(decoding: data, as: UTF8.self) + "\n"
  }
}
