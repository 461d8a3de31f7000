/// The conditions of a script rule on requests.
struct RequestMatch: Equatable, Sendable {
  /// A condition on a request's `Range` field.
  enum RangeCondition: Equatable, Sendable {
    case present
    case absent
    /// At least one of these bytes is requested; without a range all are.
    case touches(Range<Int64>)
  }

  var path = GlobPattern("*")
  /// Upper-case; nil for any.
  var methods: [String]?
  var range: RangeCondition?
  /// Patterns of fields, by lower-case name; nil for a field that must be missing.
  var fields: [String: GlobPattern?] = [:]
  /// Whether the connection must have carried a request before.
  var isReused: Bool?

  // These count the requests of a resource that meet all conditions above.
  /// The number of the first one, from 1.
  var from: Int64 = 1
  /// The number of the last one.
  var to = Int64.max
  /// The step between two of them.
  var every: Int64 = 1
  /// Their maximum number.
  var times = Int64.max
  var probability = 1.0

  /// Whether a request meets the conditions on the request itself.
  ///
  /// - Parameters:
  ///   - request: the request.
  ///   - completeLength: the length of the resource, in bytes.
  ///   - isReused: whether its connection has carried a request before.
  /// - Returns: whether all of these conditions hold.
  func fits(_ request: RequestHead, completeLength: Int64, isReused: Bool) -> Bool {
    guard path.matches(request.path), methods?.contains(request.method) ?? true,
      self.isReused ?? isReused == isReused
    else { return false }
    for (name, pattern) in fields {
      let value = request.fields[name]
      guard pattern.map({ pattern in value.map { pattern.matches($0) } ?? false }) ?? (value == nil)
      else { return false }
    }
    switch range {
    case nil: return true
    case .present: return request.fields["range"] != nil
    case .absent: return request.fields["range"] == nil
    case .touches(let bytes):
      return ScriptContext.askedRange(of: request, completeLength: completeLength).overlaps(bytes)
    }
  }

  /// Whether the rule applies to the request of this number among those that match.
  func means(requestNumber: Int64) -> Bool {
    (from...to).contains(requestNumber) && (requestNumber - from).isMultiple(of: every)
  }
}
