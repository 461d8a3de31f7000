/// A file as its parts know it, which look into the cache, ask the server, and take up the answers.
protocol ProbedFile: VersionHome, HasDeadline {
  var state: GuardedKnowledge { get }
}
