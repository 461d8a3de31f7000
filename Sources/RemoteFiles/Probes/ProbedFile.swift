/// A file as seen by the parts that look into the cache, ask the server, and process the answers.
protocol ProbedFile: VersionHome, HasDeadline {
  var state: GuardedKnowledge { get }
}
