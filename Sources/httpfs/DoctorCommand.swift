import ArgumentParser

/// `httpfs doctor`: whether this machine can mount, and what to do where it cannot.
struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check what a mount needs on this machine and say what to do.",
    discussion: "Ends with 1 if a check has failed.")

  @Option(help: "The cache directory to check.", completion: .directory)
  var cacheDir: String?

  func run() throws {
    try reportingFailure {
      var findings = [
        DoctorChecks.fuseDevice(), DoctorChecks.mountHelper(), DoctorChecks.allowOther(),
      ]
      findings += DoctorChecks.cacheDirectory(cacheDir ?? defaultCacheDirectory())
      findings += [
        DoctorChecks.certificates(), DoctorChecks.kernel(), DoctorChecks.descriptorLimit(),
      ]
      let text = findings.map { "\($0)\n" }.joined()
      try printToStandardOutput(Array(text.utf8))
      if findings.contains(where: { $0.level == .failed }) { throw ExitCode.failure }
    }
  }
}
