/// Makes the plan of a response: a pure function of the request, its parameters, the resource and
/// what happened before.
public struct PlanMaker: Sendable {
  /// What a plan depends on beside the request.
  public struct Context: Equatable, Sendable {
    /// The number of this request among those of the resource, from 1.
    public var requestNumber: Int64
    /// How many earlier responses of the resource had the fault.
    public var earlierFaults: Int64
    public var isFirstOnConnection: Bool
    /// Seconds since 1970, for the `Date` field.
    public var now: Int64

    public init(
      requestNumber: Int64 = 1, earlierFaults: Int64 = 0, isFirstOnConnection: Bool = false,
      now: Int64 = 0
    ) {
      self.requestNumber = requestNumber
      self.earlierFaults = earlierFaults
      self.isFirstOnConnection = isFirstOnConnection
      self.now = now
    }
  }

  /// How much earlier than asked a response of ``Fault/earlierRange`` begins, in bytes: a page.
  static let earlierByteCount: Int64 = 4096

  /// The bytes of fields of ``Fault/headerBomb``: far more than a client should take.
  static let bombByteCount = 3 << 20

  let request: RequestHead
  let parameters: ResponseParameters
  let resource: Resource
  let context: Context

  public init(
    request: RequestHead, parameters: ResponseParameters, resource: Resource,
    context: Context = Context()
  ) {
    self.request = request
    self.parameters = parameters
    self.resource = resource
    self.context = context
  }

  public func plan() -> ResponsePlan {
    var plan = untimedPlan()
    plan.rate = parameters.rate
    plan.totalRate = parameters.totalRate
    let delay = parameters.latency + (context.isFirstOnConnection ? parameters.connectLatency : 0)
    var prefix: [ResponsePlan.Step] = delay > 0 ? [.wait(milliseconds: delay)] : []
    if plan.fault == .stallHead { prefix.append(stallStep) }
    plan.steps.insert(contentsOf: prefix, at: 0)
    return plan
  }

  private func untimedPlan() -> ResponsePlan {
    guard request.method == "GET" || request.method == "HEAD" else {
      // The body of such a request is not read, so that the connection cannot go on.
      return .message(
        405, "only GET and HEAD\n", request: request, fields: [("Allow", "GET, HEAD")],
        now: context.now, closesConnection: request.hasBody)
    }
    let fault = candidateFault
    if let plan = replacementPlan(fault) { return plan }
    let version = parameters.version &+ (fault == .etagChange ? 1 : 0)
    let validators = Validators(
      resource: resource, version: version, policy: parameters.validators,
      isFlipped: parameters.flipsEntityTag && context.requestNumber.isMultiple(of: 2))
    switch validators.evaluate(request.fields) {
    case .failed: return bodiless(412, validators: validators, fault: fault)
    case .notModified: return bodiless(304, validators: validators, fault: fault)
    case .proceed: break
    }
    let mayHaveRange = request.method == "GET" && honoursRanges
    let field = validators.permitsRange(ifRange: request.fields["if-range"]) ? rangeField : nil
    let selection = RangeSelection(
      field: mayHaveRange ? field : nil, completeLength: resource.completeLength)
    if case .unsatisfiable = selection {
      return bodiless(416, validators: validators, fault: fault)
    }
    let planner = BodyPlanner(
      maker: self, version: version, validators: validators, selection: selection, fault: fault)
    return planner.plan()
  }

  /// Whether a range is served where one is asked for.
  ///
  /// Without a declared length it is not, unless asked for expressly: such servers do not.
  var honoursRanges: Bool {
    parameters.ranges ?? !(parameters.isChunked || parameters.isCloseDelimited)
  }

  private var rangeField: String? { request.fields["range"] }

  var stallStep: ResponsePlan.Step {
    parameters.stallDuration.map { .wait(milliseconds: $0) } ?? .stall
  }

  /// The fault that this response has unless it is of a kind that cannot have it.
  private var candidateFault: Fault? {
    guard let fault = parameters.fault, context.requestNumber >= parameters.faultFrom,
      context.earlierFaults < parameters.faultCount ?? .max
    else { return nil }
    guard let faultRange = parameters.faultRange else { return fault }
    let selection = RangeSelection(field: rangeField, completeLength: resource.completeLength)
    switch selection {
    case .whole: return fault
    case .part(let range): return range.overlaps(faultRange) ? fault : nil
    case .unsatisfiable: return nil
    }
  }

  /// The response of a fault that puts another response in the place of the resource's.
  private func replacementPlan(_ fault: Fault?) -> ResponsePlan? {
    var plan: ResponsePlan
    switch fault {
    case .status:
      var fields: [(name: String, value: String)] = []
      if let retryAfter = parameters.retryAfter { fields.append(("Retry-After", retryAfter)) }
      if parameters.status == 401 {
        fields.append(("WWW-Authenticate", "Basic realm=\"origin\""))
      } else if parameters.status == 407 {
        fields.append(("Proxy-Authenticate", "Basic realm=\"origin\""))
      }
      if parameters.status == 204 || parameters.status == 304 {
        // These two have no body (RFC 9110 §6.4.1).
        plan = ResponsePlan(steps: [.head(baseHead(parameters.status))])
        plan.closesConnection = !request.keepsConnection
      } else {
        plan = .message(
          parameters.status, "status \(parameters.status), as asked for\n", request: request,
          fields: fields, now: context.now)
      }
    case .redirect, .redirectLoop:
      let location = fault == .redirectLoop ? request.target : parameters.redirect ?? "/"
      plan = .message(
        parameters.redirectStatus, "see \(location)\n", request: request,
        fields: [("Location", location)], now: context.now)
    case .html200:
      plan = .message(
        200, "<!DOCTYPE html><html><body><h1>Something went wrong</h1></body></html>\n",
        contentType: "text/html; charset=utf-8", request: request, now: context.now)
    default: return nil
    }
    plan.fault = fault
    return plan
  }

  private func bodiless(_ status: Int, validators: Validators, fault: Fault?) -> ResponsePlan {
    var head = baseHead(status)
    add(validators, to: &head)
    if status == 416 { head.add("Content-Range", "bytes */\(resource.completeLength)") }
    if status != 304 { head.add("Content-Length", "0") }
    if fault == .headerBomb { Self.addBomb(to: &head) }
    var plan = ResponsePlan(steps: [.head(head)])
    plan.closesConnection = !request.keepsConnection || fault == .silentClose
    plan.fault = fault.flatMap { $0.needsRange || $0.needsBody ? nil : $0 }
    return plan
  }

  /// A head with the fields that every response has.
  func baseHead(_ status: Int) -> ResponseHead {
    var head = ResponseHead(status: status)
    head.add("Date", HTTPDate.field(seconds: context.now))
    if !request.keepsConnection {
      head.add("Connection", "close")
    } else if !request.isHTTP11 {
      head.add("Connection", "keep-alive")
    }
    return head
  }

  func add(_ validators: Validators, to head: inout ResponseHead) {
    head.add("ETag", validators.entityTag)
    head.add("Last-Modified", validators.lastModified.map { HTTPDate.field(seconds: $0) })
  }

  static func addBomb(to head: inout ResponseHead) {
    let filler = String(repeating: "x", count: 8000)
    for number in 0..<(bombByteCount / filler.utf8.count) { head.add("X-Bomb-\(number)", filler) }
  }
}
