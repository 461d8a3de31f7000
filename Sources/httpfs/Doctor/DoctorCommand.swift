import ArgumentParser
import FoundationEssentials
import Glibc

/// `httpfs doctor`: checks whether this machine can mount, and says what to do if not.
struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check whether this machine can mount, and say what to do if not.",
    discussion: "Exits with 1 if a check has failed.")

  @Option(help: "The cache directory to check.", completion: .directory)
  var cacheDir: String?

  @Flag(help: "Print JSON.")
  var json = false

  @Flag(
    help: "Only show the settings of the configuration file as command lines, without secrets.")
  var showConfig = false

  @OptionGroup var configurationFile: ConfigurationOptions

  func run() throws {
    try reportingFailure {
      if showConfig { return try printConfiguration() }
      let findings = findings()
      let text = try json ? document(of: findings) : findings.map { "\($0.finding)\n" }.joined()
      try printToStandardOutput(Array(text.utf8))
      if findings.contains(where: { $0.finding.level == .error }) { throw ExitCode.failure }
    }
  }

  /// The name and the result of each check.
  private func findings() -> [(check: String, finding: DoctorFinding)] {
    let checks: [(String, [DoctorFinding?])] = [
      ("fuse-device", [DoctorChecks.fuseDevice()]),
      ("fusermount3", [DoctorChecks.mountHelper()]),
      ("allow-other", [DoctorChecks.allowOther()]),
      ("cache", DoctorChecks.cacheDirectory(cacheDir ?? defaultCacheDirectory())),
      ("certificates", [DoctorChecks.certificates()]),
      ("libcurl", [DoctorChecks.library()]),
      ("proxy", [DoctorChecks.proxies()]),
      ("netrc", [DoctorChecks.netrc()]),
      ("clock", [DoctorChecks.clock()]),
      ("kernel", [DoctorChecks.kernel()]),
      ("open-files", [DoctorChecks.descriptorLimit()]),
      ("config", [DoctorChecks.configuration(configurationFile)]),
      ("mounts", DoctorChecks.mounts()),
    ]
    return checks.flatMap { name, findings in
      findings.compactMap { finding in finding.map { (name, $0) } }
    }
  }

  private func printConfiguration() throws {
    guard !configurationFile.noConfig,
      let path = configurationFile.config ?? ConfigurationSource.usualPath()
    else {
      throw CommandFailure(
        "no configuration file: it would be "
          + ConfigurationSource.candidates().joined(separator: " or "))
    }
    let source = try ConfigurationSource(path: path, isNamed: configurationFile.config != nil)
    let lines = try ["# \(path)"] + source.summary()
    try printToStandardOutput(Array((lines.joined(separator: "\n") + "\n").utf8))
  }

  private func document(
    of findings: [(check: String, finding: DoctorFinding)]
  ) throws(CommandFailure) -> String {
    let document = Document(
      fit: !findings.contains { $0.finding.level == .error },
      findings: findings.map {
        .init(
          check: $0.check, level: $0.finding.level.rawValue, message: $0.finding.message,
          advice: $0.finding.advice)
      })
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return String(decoding: try encoder.encode(document), as: UTF8.self) + "\n"
    } catch {
      throw CommandFailure("cannot write the findings as JSON: \(error)")
    }
  }

  /// The output of `--json`; missing advice is left out.
  private struct Document: Encodable {
    struct Finding: Encodable {
      let check: String
      /// `ok`, `warning` or `error`.
      let level: String
      let message: String
      let advice: String?
    }

    /// Whether httpfs can mount.
    let fit: Bool
    let findings: [Finding]
  }
}
