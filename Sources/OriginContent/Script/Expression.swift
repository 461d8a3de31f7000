/// A number that a script computes for each request: 64-bit integers, `+ - * / %`, parentheses,
/// variables, and a few functions.
indirect enum Expression: Equatable, Sendable {
  case number(Int64)
  case variable(Variable)
  case operation(Operator, Expression, Expression)

  /// The values of a request; in bytes by default.
  enum Variable: String, CaseIterable, Sendable {
    /// The first requested byte; 0 without a range.
    case first
    /// The last requested byte, as in a `Range` field; without a range, that of the resource.
    case last
    /// The number of requested bytes.
    case asked
    /// The complete length of the resource.
    case length
    /// The body bytes of the planned response.
    case size
    /// The version of the resource.
    case version
    /// The number of the request among those of the resource that match the rule, from 1.
    case request
    /// The number of the round in the innermost `repeat`, from 0.
    case index
    /// Seconds since 1970.
    case now
    /// The TCP port that the client addressed, as its `Host` field says.
    case port
  }

  enum Operator: String, Sendable {
    case add = "+"
    case subtract = "-"
    case multiply = "*"
    case divide = "/"
    case remainder = "%"
    /// The smaller of two numbers.
    case minimum = "min"
    /// The larger of two numbers.
    case maximum = "max"
    /// A random number between two bounds, both included; the first bound if the second is smaller.
    case random

    /// The functions that are written with parentheses.
    static let functions: [Operator] = [.minimum, .maximum, .random]
  }

  /// The number for a request; random numbers come from the context.
  func value(in context: inout ScriptContext) throws(ScriptError) -> Int64 {
    switch self {
    case .number(let number): return number
    case .variable(let variable): return context.value(of: variable)
    case .operation(let operation, let left, let right):
      let left = try left.value(in: &context)
      let right = try right.value(in: &context)
      let (result, isUnusable) = Self.apply(operation, left, right, random: &context.random)
      guard !isUnusable else {
        throw ScriptError(
          description: "\(left) \(operation.rawValue) \(right) cannot be computed")
      }
      return result
    }
  }

  private static func apply(
    _ operation: Operator, _ left: Int64, _ right: Int64, random: inout ScriptRandom
  ) -> (partialValue: Int64, overflow: Bool) {
    switch operation {
    case .add: left.addingReportingOverflow(right)
    case .subtract: left.subtractingReportingOverflow(right)
    case .multiply: left.multipliedReportingOverflow(by: right)
    case .divide: left.dividedReportingOverflow(by: right)
    case .remainder: left.remainderReportingOverflow(dividingBy: right)
    case .minimum: (min(left, right), false)
    case .maximum: (max(left, right), false)
    case .random: (random.number(in: left...max(left, right)), false)
    }
  }
}

extension ScriptContext {
  fileprivate func value(of variable: Expression.Variable) -> Int64 {
    switch variable {
    case .first: range.lowerBound
    case .last: range.upperBound - 1
    case .asked: range.upperBound - range.lowerBound
    case .length: completeLength
    case .size: planned.bodyByteCount
    case .version: Int64(clamping: version)
    case .request: requestNumber
    case .index: index
    case .now: now
    case .port: port
    }
  }
}
