import Dispatch
import Glibc
import HTTPTransfer
import HTTPTransferCore
import LinuxSystem
import Synchronization

/// `--url-command`: a shell command of the user prints the URL to request for a file.
///
/// Its output is a secret that is sent only to the servers. The listed URL may be a secret too, so
/// the command gets it in its environment, which other users cannot see, and not as an argument.
final class URLCommand: URLSigner {
  private let command: String
  private let timeLimit: Duration
  /// The first lines of the script.
  ///
  /// They change to the directory in which httpfs was started, because a daemon has left it and
  /// relative paths may need it, and set `$1` to the listed URL.
  private let prologue: String
  private let report: @Sendable (_ line: String, _ name: String) -> Void
  private let queue = DispatchQueue(label: "httpfs.url-command", attributes: .concurrent)
  private let state = Mutex(State())

  private struct Job: Sendable {
    let url: RemoteURL
    let name: String
    let done: @Sendable (Result<RemoteURL, URLSigningError>) -> Void
  }

  private struct State {
    var waiting: [Job] = []
    var runningCount = 0
    /// How many commands are being started, whose process groups are not known yet.
    var startingCount = 0
    var groups: Set<pid_t> = []
    var hasEnded = false
  }

  /// The maximum number of concurrent runs: a directory may have thousands of files.
  private static let concurrency = 4

  /// The maximum time limit of a run.
  static let maximumTimeLimit = Duration.seconds(30)

  /// How long ``end()`` waits for commands that are being started.
  private static let startTimeout = Duration.seconds(2)

  /// How many lines of a run's standard error are reported.
  private static let reportedLineCount = 20

  /// - Parameters:
  ///   - command: the script for `/bin/sh -c`.
  ///   - timeLimit: how long to wait for it before it is killed.
  ///   - report: called with each line that it writes to standard error, without the secrets of
  ///     URLs, and the name of the file.
  init(
    _ command: String, timeLimit: Duration,
    report: @escaping @Sendable (_ line: String, _ name: String) -> Void
  ) {
    self.command = command
    self.timeLimit = min(timeLimit, Self.maximumTimeLimit)
    self.report = report
    let path = getcwd(nil, 0)
    defer { free(path) }
    let directory = path.map { String(cString: $0) } ?? "/"
    let quoted = directory.replacing("'", with: "'\\''")
    prologue = "cd -- '\(quoted)' || exit\nset -- \"$HTTPFS_URL\"\n"
  }

  func sign(
    _ url: RemoteURL, name: String,
    _ done: @escaping @Sendable (Result<RemoteURL, URLSigningError>) -> Void
  ) {
    let job = Job(url: url, name: name, done: done)
    let mayRun = state.withLock { state in
      guard state.runningCount < Self.concurrency else {
        state.waiting.append(job)
        return false
      }
      state.runningCount += 1
      return true
    }
    if mayRun { queue.async { [self] in run(job) } }
  }

  /// Kills running commands, because no URL is needed any more.
  ///
  /// Waits for commands that are being started, because nobody would kill them after the process
  /// has exited.
  func end() {
    let groups = state.withLock { state in
      state.hasEnded = true
      return state.groups
    }
    for group in groups { kill(-group, SIGKILL) }
    let deadline = ContinuousClock.now + Self.startTimeout
    while state.withLock({ $0.startingCount > 0 }), ContinuousClock.now < deadline {
      usleep(2000)
    }
  }

  private func run(_ first: Job) {
    var job = first
    while true {
      job.done(result(of: job))
      let next = state.withLock { state -> Job? in
        guard !state.waiting.isEmpty else {
          state.runningCount -= 1
          return nil
        }
        return state.waiting.removeFirst()
      }
      guard let next else { return }
      job = next
    }
  }

  private func result(of job: Job) -> Result<RemoteURL, URLSigningError> {
    let mayStart = state.withLock { state in
      if !state.hasEnded { state.startingCount += 1 }
      return !state.hasEnded
    }
    guard mayStart else {
      return .failure(URLSigningError("the URL command is not run any more"))
    }
    // In the environment, because every user of the machine can see arguments.
    let shell = ShellCommand(
      script: prologue + command,
      variables: [("HTTPFS_URL", job.url.text), ("HTTPFS_NAME", job.name)])
    let outcome: ShellCommand.Outcome
    var group: pid_t = 0
    do throws(ErrorNumber) {
      outcome = try shell.run(within: timeLimit) { started in
        group = started
        let hasEnded = state.withLock { state in
          state.startingCount -= 1
          state.groups.insert(started)
          return state.hasEnded
        }
        if hasEnded { kill(-started, SIGKILL) }
      }
    } catch {
      if group == 0 { state.withLock { $0.startingCount -= 1 } }
      return .failure(URLSigningError("the URL command cannot be started: \(error)"))
    }
    state.withLock { _ = $0.groups.remove(group) }
    let result = Self.url(of: outcome, timeLimit: timeLimit)
    var secrets = [job.url]
    if case .success(let url) = result { secrets.append(url) }
    for line in Self.lines(outcome.errors).prefix(Self.reportedLineCount) {
      report(Self.hiding(secrets, in: line), job.name)
    }
    return result
  }

  /// The URL that a run has printed: one line, apart from empty lines.
  static func url(
    of outcome: ShellCommand.Outcome, timeLimit: Duration
  ) -> Result<RemoteURL, URLSigningError> {
    switch outcome.ending {
    case .exited(0)?: break
    case .exited(let code)?:
      return .failure(URLSigningError("the URL command failed (exit code \(code))"))
    case .signalled(let number)?:
      return .failure(URLSigningError("the URL command was ended by signal \(number)"))
    case nil:
      return .failure(URLSigningError("the URL command took longer than \(timeLimit)"))
    }
    let lines = lines(outcome.output)
    guard let line = lines.first else {
      return .failure(URLSigningError("the URL command printed nothing"))
    }
    guard lines.count == 1 else {
      return .failure(URLSigningError("the URL command printed more than one line"))
    }
    // The message shows nothing of the output.
    guard let url = try? RemoteURL(line) else {
      return .failure(URLSigningError("the URL command printed no http or https URL"))
    }
    return .success(url)
  }

  private static func lines(_ bytes: [UInt8]) -> [String] {
    bytes.split { $0 == 0x0A || $0 == 0x0D }.compactMap { line in
      let text = line.drop { $0 == 0x20 || $0 == 0x09 }
      let end = text.lastIndex { $0 != 0x20 && $0 != 0x09 }
      return end.map { String(decoding: text[...$0], as: UTF8.self) }
    }
  }

  /// Hides the secrets of any URL in a line, and those of `urls` in any form.
  static func hiding(_ urls: [RemoteURL], in line: String) -> String {
    let hidden = Redaction.hidingSecrets(in: Array(line.utf8.prefix(1000)), after: [])
    var text = String(decoding: hidden, as: UTF8.self)
    for url in urls {
      for secret in [url.query, url.userInfo] + (url.query ?? "").split(separator: "&").map(value) {
        guard let secret, secret.utf8.count >= 8 else { continue }
        text = text.replacing(secret, with: "…")
      }
    }
    return text
  }

  private static func value(of parameter: Substring) -> String? {
    parameter.firstIndex(of: "=").map { String(parameter[parameter.index(after: $0)...]) }
  }
}
