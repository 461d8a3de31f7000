/// The script rules, which determine every byte, and their counts.
///
/// A script is a value: the same requests in the same order make the same choices.
package struct Script: Equatable, Sendable {
  /// A rule that answers a request.
  package struct Choice: Equatable, Sendable {
    package let rule: ScriptRule
    /// The name of the rule.
    package let name: String
    /// The number of the request among those of its resource that match the rule, from 1.
    package let requestNumber: Int64
    let random: ScriptRandom
  }

  /// The counts of a rule for a resource.
  private struct Counts: Equatable, Sendable {
    var fitting: Int64 = 0
    var used: Int64 = 0
  }

  /// A rule and a resource, which is a path with its query.
  private struct Use: Hashable, Sendable {
    let rule: String
    let target: String
  }

  /// The seed of all random choices.
  package var seed: UInt64 = 0

  /// The rules, oldest first; no two have the same name.
  package private(set) var rules: [ScriptRule] = []
  private var counts: [Use: Counts] = [:]
  /// How many rules were added without a name.
  private var unnamedCount = 0

  package init() {}

  /// Adds a rule, and replaces one of the same name.
  ///
  /// The rule becomes the newest, and its counts restart.
  ///
  /// A rule without a name is named by its number among such rules: `rule 1`.
  package mutating func add(_ rule: ScriptRule) {
    var rule = rule
    if let name = rule.name {
      remove(name)
    } else {
      unnamedCount += 1
      rule.name = "rule \(unnamedCount)"
    }
    rules.append(rule)
  }

  /// Removes the rule of this name, if there is one.
  package mutating func remove(_ name: String) {
    rules.removeAll { $0.name == name }
    counts = counts.filter { $0.key.rule != name }
  }

  /// Counts a request for the rules that it matches, and finds the newest one that applies.
  ///
  /// - Parameters:
  ///   - request: the request.
  ///   - completeLength: the length of the resource, in bytes.
  ///   - isReused: whether its connection has carried a request before.
  /// - Returns: the rule with the values for its plan; nil if none applies.
  package mutating func choose(
    _ request: RequestHead, completeLength: Int64, isReused: Bool
  ) -> Choice? {
    var choice: Choice?
    // Newest first; the other rules also count the request.
    for rule in rules.reversed()
    where rule.match.fits(request, completeLength: completeLength, isReused: isReused) {
      let name = rule.name ?? ""
      let use = Use(rule: name, target: request.target)
      var count = counts[use] ?? Counts()
      count.fitting += 1
      defer { counts[use] = count }
      guard choice == nil, rule.match.means(requestNumber: count.fitting),
        count.used < rule.match.times
      else { continue }
      var random = ScriptRandom(
        seed: seed, rule: name, target: request.target, requestNumber: count.fitting)
      guard random.happens(withProbability: rule.match.probability) else { continue }
      count.used += 1
      choice = Choice(
        rule: rule, name: name, requestNumber: count.fitting, random: random)
    }
    return choice
  }
}
