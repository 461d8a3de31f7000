/// Plans responses to PUT and POST.
///
/// It decides when and how much of the body is read, and which faults occur meanwhile.
struct UploadPlanner {
  /// The number of body bytes to read before a response that does not depend on the body.
  ///
  /// It is more than a client should send in vain, and small enough to read at once.
  static let refusedByteLimit: Int64 = 64 << 20

  /// The default position of a fault in a body of unknown length.
  private static let defaultPlace: Int64 = 64 << 10

  let maker: PlanMaker

  /// The response to an upload that is neither refused nor replaced.
  func plan(_ fault: Fault?) -> ResponsePlan {
    let fault = applicable(fault)
    if fault == .uploadEarlyResponse { return earlyResponse() }
    var head = maker.baseHead(maker.request.method == "PUT" ? 201 : 200)
    if fault == .headerBomb { PlanMaker.addBomb(to: &head) }
    let isEcho = maker.parameters.echoesUpload
    let answer: [ResponsePlan.Step] = [
      .receiveBody(limit: nil), .uploadAnswer(UploadAnswer(head: head, isEcho: isEcho)),
    ]
    var plan: ResponsePlan
    switch fault {
    case .uploadReset: plan = ResponsePlan(steps: receiveToPlace + [.reset])
    case .uploadStall: plan = ResponsePlan(steps: receiveToPlace + [maker.stallStep] + answer)
    default: plan = ResponsePlan(steps: answer)
    }
    plan.keptBodyByteCount = isEcho ? UploadAnswer.echoLimit : 0
    plan.closesConnection = !maker.request.keepsConnection || fault == .silentClose
    plan.fault = fault
    return lettingClientSend(plan)
  }

  /// Turns a response that does not depend on the body into the response to an upload.
  ///
  /// A client that waits for permission gets the response instead of the permission; the body of
  /// another client is read first. With `isLate`, both send the whole body.
  func refusing(with response: ResponsePlan, isLate: Bool = false) -> ResponsePlan {
    let request = maker.request
    guard request.hasBody else { return response }
    var plan = response
    if request.expectsContinue, !isLate {
      plan.announceClose()
      return plan
    }
    plan.steps.insert(.receiveBody(limit: isLate ? nil : Self.refusedByteLimit), at: 0)
    if !isLate, request.contentLength ?? 0 > Self.refusedByteLimit { plan.announceClose() }
    return lettingClientSend(plan)
  }

  /// The fault, unless the response to an upload cannot have it.
  private func applicable(_ fault: Fault?) -> Fault? {
    switch fault {
    case .uploadReset, .uploadStall, .uploadEarlyResponse: maker.request.hasBody ? fault : nil
    case .stallHead, .silentClose, .headerBomb: fault
    default: nil
    }
  }

  private func earlyResponse() -> ResponsePlan {
    let status = maker.parameters.status ?? 413
    var plan = maker.shortResponse(status, "status \(status), before the end of the body\n")
    plan.announceClose()
    plan.steps.insert(contentsOf: receiveToPlace, at: 0)
    plan.drainsUnreadBody = false
    plan.fault = .uploadEarlyResponse
    return lettingClientSend(plan)
  }

  /// The step that reads up to the position of a fault.
  private var receiveToPlace: [ResponsePlan.Step] {
    let place =
      maker.parameters.faultAt ?? maker.request.contentLength.map { $0 / 2 } ?? Self.defaultPlace
    return place > 0 ? [.receiveBody(limit: place)] : []
  }

  /// Answers an `Expect: 100-continue` before the body is read for the first time (RFC 9110
  /// §10.1.1).
  private func lettingClientSend(_ plan: ResponsePlan) -> ResponsePlan {
    var plan = plan
    plan.uploadRate = maker.parameters.uploadRate
    plan.limitsReceiveBuffer =
      plan.uploadRate != nil || plan.fault == .uploadStall || plan.fault == .uploadReset
      || plan.fault == .uploadEarlyResponse
    guard maker.request.expectsContinue, let index = plan.steps.firstIndex(where: \.isReceive)
    else { return plan }
    plan.steps.insert(.interim(ResponseHead(status: 100)), at: index)
    return plan
  }
}
