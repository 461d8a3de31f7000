/// A file as those see it who ask its server and take up the answers.
protocol ProbedFile: VersionHome, HasDeadline {
  var state: GuardedKnowledge { get }
}
