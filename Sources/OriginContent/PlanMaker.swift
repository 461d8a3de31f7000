/// Makes the plan of a response.
///
/// The plan is a pure function of the request, its parameters, the resource and earlier requests.
package struct PlanMaker: Sendable {
  /// The inputs of a plan other than the request.
  package struct Context: Equatable, Sendable {
    /// The number of this request among those of the resource, from 1.
    package var requestNumber: Int64
    /// How many earlier responses of the resource had the fault.
    package var earlierFaults: Int64
    package var isFirstOnConnection: Bool
    /// Seconds since 1970, for the `Date` field.
    package var now: Int64

    package init(
      requestNumber: Int64 = 1, earlierFaults: Int64 = 0, isFirstOnConnection: Bool = false,
      now: Int64 = 0
    ) {
      self.requestNumber = requestNumber
      self.earlierFaults = earlierFaults
      self.isFirstOnConnection = isFirstOnConnection
      self.now = now
    }
  }

  /// The bytes from the start of a response of ``Fault/earlierRange`` to the requested range: a
  /// page.
  static let earlierByteCount: Int64 = 4096

  /// The number of field bytes of ``Fault/headerBomb``: far more than a client should accept.
  static let bombByteCount = 3 << 20

  let request: RequestHead
  let parameters: ResponseParameters
  let resource: Resource
  let context: Context

  package init(
    request: RequestHead, parameters: ResponseParameters, resource: Resource,
    context: Context = Context()
  ) {
    self.request = request
    self.parameters = parameters
    self.resource = resource
    self.context = context
  }

  package func plan() -> ResponsePlan {
    var plan = untimedPlan()
    plan.rate = parameters.rate
    plan.totalRate = parameters.totalRate
    let delay = parameters.latency + (context.isFirstOnConnection ? parameters.connectLatency : 0)
    if let index = plan.steps.firstIndex(where: \.isFinalHead) {
      var before: [ResponsePlan.Step] = plan.fault == .stallHead ? [stallStep] : []
      // HTTP/1.0 clients do not know interim responses (RFC 9110 §15.2).
      if let status = parameters.interimStatus, request.isHTTP11 { before.append(interim(status)) }
      plan.steps.insert(contentsOf: before, at: index)
    }
    if delay > 0 { plan.steps.insert(.wait(milliseconds: delay), at: 0) }
    if let cookie = parameters.cookie {
      plan.changeFinalHead { $0.add("Set-Cookie", "\(cookie); Path=/") }
    }
    return plan
  }

  /// Whether the request has a body to read: generated content accepts uploads, files do not.
  private var isUpload: Bool {
    guard case .generated = resource else { return false }
    return request.method == "PUT" || request.method == "POST"
  }

  private func interim(_ status: Int) -> ResponsePlan.Step {
    var head = ResponseHead(status: status)
    head.add("Link", "</style.css>; rel=preload; as=style")
    return .interim(head)
  }

  private func untimedPlan() -> ResponsePlan {
    guard isUpload || request.method == "GET" || request.method == "HEAD" else {
      var methods = "GET, HEAD"
      if case .generated = resource { methods += ", PUT, POST" }
      // The body of such a request is not read, so the connection cannot be reused.
      return .message(
        405, "only \(methods)\n", request: request, fields: [("Allow", methods)],
        now: context.now, closesConnection: request.hasBody)
    }
    if isUpload, request.bodyFraming == .unknown {
      return .message(
        400, "the end of the body cannot be known\n", request: request, now: context.now,
        closesConnection: true)
    }
    if let plan = refusal { return plan }
    let fault = candidateFault
    if let plan = replacementPlan(fault) {
      return isUpload ? UploadPlanner(maker: self).refusing(with: plan) : plan
    }
    return isUpload ? UploadPlanner(maker: self).plan(fault) : resourcePlan(fault)
  }

  /// The response to a request without access to the resource; nil if it has access.
  private var refusal: ResponsePlan? {
    if parameters.requiresSignature,
      !SignedLink.permits(path: request.path, query: request.query, now: context.now)
    {
      let plan = shortResponse(403, "signature needed, or expired\n")
      return isUpload ? UploadPlanner(maker: self).refusing(with: plan) : plan
    }
    let policy = AccessPolicy(
      credentials: parameters.credentials, requiredCookie: parameters.requiredCookie)
    let plan: ResponsePlan
    var isLate = false
    switch policy.refusal(of: request.fields) {
    case .unauthorized:
      plan = shortResponse(401, "credentials needed\n")
      isLate = parameters.authenticationMode == .late
    case .forbidden: plan = shortResponse(403, "cookie needed\n")
    case nil: return nil
    }
    return isUpload ? UploadPlanner(maker: self).refusing(with: plan, isLate: isLate) : plan
  }

  /// The response to a GET or HEAD: the resource, or the result of the preconditions.
  private func resourcePlan(_ fault: Fault?) -> ResponsePlan {
    let version = parameters.version &+ (fault == .etagChange ? 1 : 0)
    let identity = validators(version: version, coding: nil)
    let mayHaveRange = request.method == "GET" && honoursRanges
    let field = identity.permitsRange(ifRange: request.fields["if-range"]) ? rangeField : nil
    let selection = RangeSelection(
      field: mayHaveRange ? field : nil, completeLength: resource.completeLength,
      allowsSeveral: parameters.sendsMultipart)
    // Ranges refer to the identity coding.
    let coding = selection == .whole && fault != .gzip ? acceptedCoding : nil
    let validators = coding == nil ? identity : validators(version: version, coding: coding)
    switch validators.evaluate(request.fields) {
    case .failed: return bodiless(412, validators: validators, fault: fault)
    case .notModified: return bodiless(304, validators: validators, fault: fault)
    case .proceed: break
    }
    if case .unsatisfiable = selection {
      return bodiless(416, validators: validators, fault: fault)
    }
    let planner = BodyPlanner(
      maker: self, version: version, validators: validators, selection: selection, coding: coding,
      fault: fault)
    return planner.plan()
  }

  private func validators(version: UInt64, coding: ContentCoding?) -> Validators {
    Validators(
      resource: resource, version: version, policy: parameters.validators,
      isFlipped: parameters.flipsEntityTag && context.requestNumber.isMultiple(of: 2),
      coding: coding)
  }

  /// The coding that the parameters request and the client accepts.
  private var acceptedCoding: ContentCoding? {
    parameters.coding.flatMap {
      $0.isAccepted(by: request.fields["accept-encoding"]) ? $0 : nil
    }
  }

  /// Whether to serve ranges.
  ///
  /// As on real servers, a response without a declared length has no ranges unless the parameters
  /// enable them.
  var honoursRanges: Bool {
    parameters.ranges ?? !(parameters.isChunked || parameters.isCloseDelimited)
  }

  private var rangeField: String? { request.fields["range"] }

  var stallStep: ResponsePlan.Step {
    parameters.stallDuration.map { .wait(milliseconds: $0) } ?? .stall
  }

  /// The fault of this response, unless this kind of response cannot have it.
  private var candidateFault: Fault? {
    guard let fault = parameters.fault, context.requestNumber >= parameters.faultFrom,
      context.earlierFaults < parameters.faultCount ?? .max
    else { return nil }
    guard let faultRange = parameters.faultRange else { return fault }
    let selection = RangeSelection(
      field: rangeField, completeLength: resource.completeLength,
      allowsSeveral: parameters.sendsMultipart)
    switch selection {
    case .whole: return fault
    case .part(let range): return range.overlaps(faultRange) ? fault : nil
    case .parts(let ranges):
      return ranges.contains { $0.overlaps(faultRange) } ? fault : nil
    case .unsatisfiable: return nil
    }
  }

  /// The response of a fault that replaces the resource's response.
  private func replacementPlan(_ fault: Fault?) -> ResponsePlan? {
    var plan: ResponsePlan
    switch fault {
    case .status:
      var fields: [(name: String, value: String)] = []
      if let retryAfter = parameters.retryAfter { fields.append(("Retry-After", retryAfter)) }
      let status = parameters.status ?? 503
      plan = shortResponse(status, "status \(status), as asked for\n", fields: fields)
    case .redirect, .redirectLoop:
      let location = fault == .redirectLoop ? request.target : parameters.redirect ?? "/"
      plan = shortResponse(
        parameters.redirectStatus, "see \(location)\n", fields: [("Location", location)])
    case .html200:
      plan = .message(
        200, "<!DOCTYPE html><html><body><h1>Something went wrong</h1></body></html>\n",
        contentType: "text/html; charset=utf-8", request: request, now: context.now)
    default: return nil
    }
    plan.fault = fault
    return plan
  }

  /// A response with a status and, if the status allows a body, a line of text.
  func shortResponse(
    _ status: Int, _ text: String, fields: [(name: String, value: String)] = []
  ) -> ResponsePlan {
    var fields = fields
    if status == 401 {
      fields.append(("WWW-Authenticate", "Basic realm=\"origin\""))
    } else if status == 407 {
      fields.append(("Proxy-Authenticate", "Basic realm=\"origin\""))
    }
    guard status == 204 || status == 205 || status == 304 else {
      return .message(status, text, request: request, fields: fields, now: context.now)
    }
    // These have no body. 204 must not declare a length, and 304 would declare that of the resource
    // (RFC 9110 §8.6, §15.3.6).
    var head = baseHead(status)
    for field in fields { head.add(field.name, field.value) }
    if status == 205 { head.add("Content-Length", "0") }
    var plan = ResponsePlan(steps: [.head(head)])
    plan.closesConnection = !request.keepsConnection
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
    plan.fault = fault.flatMap { $0.needsRange || $0.needsBody || $0.needsUpload ? nil : $0 }
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
    if parameters.coding != nil { head.add("Vary", "Accept-Encoding") }
    head.add("ETag", validators.entityTag)
    head.add("Last-Modified", validators.lastModified.map { HTTPDate.field(seconds: $0) })
  }

  static func addBomb(to head: inout ResponseHead) {
    let filler = String(repeating: "x", count: 8000)
    for number in 0..<(bombByteCount / filler.utf8.count) { head.add("X-Bomb-\(number)", filler) }
  }
}
