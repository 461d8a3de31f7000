/// Makes the plan of a response for a rule of a script.
///
/// The plan is a pure function of the rule's choice, the request, and the response that the
/// parameters alone would make.
package struct ScriptPlanner {
  /// The maximum number of actions of one response.
  ///
  /// A larger script is probably wrong. The same holds for ``byteLimit``, the maximum number of
  /// bytes in its texts.
  private static let actionLimit = 1_000_000
  private static let byteLimit = 64 << 20

  /// The longest delay: a day, in milliseconds.
  private static let delayLimit: Int64 = 86_400_000

  private let actions: [ScriptAction]
  private let planned: ResponsePlan
  private let ruleName: String
  private var context: ScriptContext

  /// The rest of the planned response before and after its head.
  private var prelude: [ResponsePlan.Step]
  private let head: ResponsePlan.Step?
  private var body: [ResponsePlan.Step]

  private var steps: [ResponsePlan.Step] = []
  /// The bytes of texts since the last step.
  private var unsent: [UInt8] = []
  private var usesPlanned = false
  private var hasRead = false
  private var isEnded = false
  private var closes = false
  private var limitsReading = false
  private var actionCount = 0
  private var byteCount = 0

  /// A planner for one request.
  ///
  /// - Parameters:
  ///   - choice: the rule that answers it.
  ///   - request: the request.
  ///   - planned: the response that the parameters make.
  ///   - completeLength: the length of the resource, in bytes.
  ///   - version: the version of the resource.
  ///   - now: seconds since 1970.
  package init(
    _ choice: Script.Choice, request: RequestHead, planned: ResponsePlan, completeLength: Int64,
    version: UInt64, now: Int64
  ) {
    actions = choice.rule.actions
    ruleName = choice.name
    self.planned = planned
    context = ScriptContext(
      request: request,
      range: ScriptContext.askedRange(of: request, completeLength: completeLength),
      completeLength: completeLength, version: version, requestNumber: choice.requestNumber,
      now: now, planned: planned, random: choice.random)
    let headIndex = planned.steps.firstIndex(where: \.isFinalHead)
    head = headIndex.map { planned.steps[$0] }
    prelude = Array(planned.steps[..<(headIndex ?? planned.steps.endIndex)])
    body = headIndex.map { Array(planned.steps[($0 + 1)...]) } ?? []
    // The latency simulates the network, independently of what the script sends.
    if case .wait = prelude.first { steps.append(prelude.removeFirst()) }
  }

  /// The plan; a script that cannot be executed makes it a 500 with the reason.
  package func plan() -> ResponsePlan {
    var planner = self
    do {
      try planner.carryOut(planner.actions)
    } catch {
      var plan = ResponsePlan.message(
        500, "script rule '\(ruleName)': \(error.description)\n", request: context.request,
        now: context.now, closesConnection: true)
      plan.ruleName = ruleName
      return plan
    }
    planner.flush()
    return planner.finished
  }

  private var finished: ResponsePlan {
    var plan = planned
    plan.steps = steps
    plan.ruleName = ruleName
    if !usesPlanned {
      plan.fault = nil
      plan.closesConnection = !context.request.keepsConnection
    }
    if closes { plan.closesConnection = true }
    if limitsReading { plan.limitsReceiveBuffer = true }
    return plan
  }

  private mutating func carryOut(_ actions: [ScriptAction]) throws(ScriptError) {
    for action in actions where !isEnded {
      actionCount += 1
      guard actionCount <= Self.actionLimit else {
        throw ScriptError(description: "more than \(Self.actionLimit) actions")
      }
      try carryOut(action)
    }
  }

  private mutating func carryOut(_ action: ScriptAction) throws(ScriptError) {
    switch action {
    case .head(let change): try sendHead(change)
    case .body(let count): try sendBody(count)
    case .text(let template): try send(template.text(in: &context).utf8)
    case .bytes(let bytes): try send(bytes)
    case .content(let first, let last, let version):
      try sendContent(first: first, last: last, version: version)
    case .delay(let expression):
      let milliseconds = try min(Self.delayLimit, natural(expression))
      add(.wait(milliseconds: milliseconds))
    case .rate(let expression):
      var rate: Int64?
      if let expression { rate = try natural(expression) }
      add(.pace(bytesPerSecond: rate == 0 ? nil : rate))
    case .read(let expression): try read(expression)
    case .choose(let alternatives):
      let index = context.random.number(in: 0...Int64(alternatives.count - 1))
      try carryOut(alternatives[Int(index)])
    case .repetition(let expression, let actions):
      try repeatActions(actions, count: natural(expression))
    case .stall:
      add(.stall)
      isEnded = true
    case .close:
      closes = true
      isEnded = true
    case .reset:
      add(.reset)
      isEnded = true
    }
  }

  private mutating func sendHead(_ change: HeadChange) throws(ScriptError) {
    usesPlanned = true
    add(prelude)
    hasRead = hasRead || prelude.contains(where: \.isReceive)
    prelude = []
    switch head {
    case .head(let planned):
      let head = try change.applied(to: planned, in: &context)
      guard let cut = change.cut else {
        add(.head(head))
        return
      }
      try send(head.bytes.prefix(Int(clamping: natural(cut))))
    case .uploadAnswer(var answer):
      answer.head = try change.applied(to: answer.head, in: &context)
      add(.uploadAnswer(answer))
    default: break  // The planned response has none, as under `upload-reset`.
    }
  }

  private mutating func sendBody(_ expression: Expression?) throws(ScriptError) {
    usesPlanned = true
    guard let expression else {
      add(body)
      body = []
      return
    }
    var (before, after) = body.split(
      atBodyByte: try natural(expression))
    // The end of the body, such as its last chunk, does not belong to its bytes.
    let end = before.lastIndex { $0.bodyByteCount > 0 }.map { $0 + 1 } ?? 0
    after.insert(contentsOf: before[end...], at: 0)
    before.removeSubrange(end...)
    add(before)
    body = after
  }

  private mutating func sendContent(
    first: Expression, last: Expression, version: Expression?
  ) throws(ScriptError) {
    let first = try natural(first)
    // Below the maximum, so an upper bound exists.
    let last = min(try last.value(in: &context), .max - 1)
    var number = context.version
    if let version { number = UInt64(bitPattern: try version.value(in: &context)) }
    if first <= last { add(.rawContent(first..<(last + 1), version: number)) }
  }

  private mutating func read(_ expression: Expression?) throws(ScriptError) {
    if !hasRead, context.request.expectsContinue {
      add(.interim(ResponseHead(status: 100)))
    }
    hasRead = true
    var limit: Int64?
    if let expression { limit = try natural(expression) }
    limitsReading = limitsReading || limit != nil
    add(.receiveBody(limit: limit))
  }

  private mutating func repeatActions(
    _ actions: [ScriptAction], count: Int64
  ) throws(ScriptError) {
    let outer = context.index
    defer { context.index = outer }
    var round: Int64 = 0
    while round < count, !isEnded {
      context.index = round
      try carryOut(actions)
      round += 1
    }
  }

  /// Sends bytes, together with the bytes of the previous action.
  private mutating func send(_ bytes: some Collection<UInt8>) throws(ScriptError) {
    byteCount += bytes.count
    guard byteCount <= Self.byteLimit else {
      throw ScriptError(description: "texts of more than \(Self.byteLimit) bytes")
    }
    unsent += bytes
  }

  private mutating func add(_ steps: ResponsePlan.Step...) { add(steps) }

  private mutating func add(_ steps: [ResponsePlan.Step]) {
    flush()
    self.steps += steps
  }

  /// Makes a step of the collected bytes.
  private mutating func flush() {
    if !unsent.isEmpty { steps.append(.raw(unsent)) }
    unsent = []
  }

  /// The value of an expression; 0 if it is negative, as `size - 1` is without a body.
  private mutating func natural(_ expression: Expression) throws(ScriptError) -> Int64 {
    max(0, try expression.value(in: &context))
  }
}
