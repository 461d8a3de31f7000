import Dispatch
import Glibc
import LinuxSystem
import MountView

/// `httpfs status --watch` on a terminal: shows a ``StatusView`` and executes its keys.
struct LiveView {
  /// Why it has ended.
  enum Ending {
    case quit
    /// The mount is gone.
    case unmounted
    /// The mount can no longer be queried.
    case failed(String)
    case signal(Int32)
  }

  private enum Message: Sendable {
    case status(StatusPoller.Answer)
    case done(ControlRequest, failure: String?)
    case signal(Int32)
  }

  /// The view reports a mount as silent only after this time.
  private static let timeout = Duration.seconds(2)
  /// How long the result of a command is shown.
  private static let noticeTime = Duration.seconds(6)
  /// After how many consecutive failures the view gives up.
  private static let failureLimit = 3
  /// Bytes that follow Escape within this time, in milliseconds, belong to it.
  private static let escapeTime: Int32 = 50

  private let mount: MountTable.Entry
  private let mailbox: Mailbox<Message>
  private let poller: StatusPoller
  private let commands = DispatchQueue(label: "httpfs.commands")
  private let terminal = TerminalSession()
  private let isUTF8 = TerminalTraits.isUTF8
  private var view: StatusView
  private var painter = ScreenPainter(color: TerminalTraits.color)
  private var parser = KeyParser()
  private var noticeAt = ContinuousClock.now
  private var failureCount = 0

  /// Prepares to watch `mount`, whose mount point the user named `shownPath`.
  init(of mount: MountTable.Entry, shownPath: String) throws(CommandFailure) {
    self.mount = mount
    view = StatusView(mountpoint: shownPath)
    mailbox = try Mailbox()
    poller = try StatusPoller(mountpoint: mount.mountpoint)
  }

  /// Shows the mount until the user quits or the mount ends; then restores the terminal.
  mutating func run() throws(CommandFailure) -> Ending {
    WatchSignals.block()
    try terminal.enter()
    // On every exit.
    defer { terminal.leave() }
    let mailbox = mailbox
    WatchSignals.deliver { mailbox.post(.signal($0)) }
    poller.start { mailbox.post(.status($0)) }
    defer { poller.end() }
    while true {
      try draw()
      if let ending = try waitAndHandle() { return ending }
    }
  }

  private mutating func draw() throws(CommandFailure) {
    let size = terminalSize(of: STDOUT_FILENO)
    let screen = view.screen(columns: size.columns, rows: size.rows, isUTF8: isUTF8)
    try printToStandardOutput(painter.draw(screen))
  }

  /// Waits for a key, a message or a time, and handles it.
  private mutating func waitAndHandle() throws(CommandFailure) -> Ending? {
    var descriptors = [
      pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
      pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0),
    ]
    let count = poll(&descriptors, 2, parser.isWaiting ? Self.escapeTime : 1000)
    if count == 0, let ending = try press(parser.flush()) { return ending }
    if count > 0, descriptors[0].revents != 0 {
      var buffer = [UInt8](repeating: 0, count: 1024)
      let byteCount = read(STDIN_FILENO, &buffer, buffer.count)
      // The terminal is gone.
      if byteCount == 0 || byteCount < 0 && errno != EINTR && errno != EAGAIN { return .quit }
      if let ending = try press(parser.keys(from: buffer.prefix(max(0, byteCount)))) {
        return ending
      }
    }
    for message in mailbox.take() {
      if let ending = try handle(message) { return ending }
    }
    if ContinuousClock.now - noticeAt > Self.noticeTime { view.clearNotice() }
    return try recordSilence()
  }

  private mutating func recordSilence() throws(CommandFailure) -> Ending? {
    guard let silence = poller.silence, silence >= Self.timeout else {
      view.unansweredSeconds = nil
      return nil
    }
    view.unansweredSeconds = Int(silence / .seconds(1))
    return try isMounted ? nil : .unmounted
  }

  private mutating func handle(_ message: Message) throws(CommandFailure) -> Ending? {
    switch message {
    case .status(.report(let report)):
      failureCount = 0
      view.failure = nil
      view.take(report)
    case .status(.failed(let text)):
      failureCount += 1
      // A mount that failed before it disappeared was not unmounted.
      if try !isMounted { return failureCount > 1 ? .failed(text) : .unmounted }
      if failureCount >= Self.failureLimit { return .failed(text) }
      view.failure = text
    case .done(let request, let failure):
      view.finish(request, failure: failure)
      noticeAt = .now
      poller.hurry()
    case .signal(SIGWINCH): painter.forget()
    case .signal(SIGTSTP): try suspend()
    case .signal(SIGCONT): try takeTerminal()
    case .signal(let number): return .signal(number)
    }
    return nil
  }

  private mutating func press(_ keys: [Key]) throws(CommandFailure) -> Ending? {
    for key in keys {
      noticeAt = .now
      switch view.press(key) {
      case nil: break
      case .quit: return .quit
      case .suspend: try suspend()
      case .redraw: try takeTerminal()
      case .control(let request): perform(request)
      }
    }
    return nil
  }

  /// Executes the request in a child process, because it may wait for the mount.
  private func perform(_ request: ControlRequest) {
    let arguments = request.arguments(mountpoint: mount.mountpoint)
    commands.async { [mailbox] in
      let failure: String?
      do {
        failure = try OwnCommand().run(arguments).failure
      } catch {
        failure = "cannot start a process: \(error)"
      }
      mailbox.post(.done(request, failure: failure))
    }
  }

  private mutating func suspend() throws(CommandFailure) {
    terminal.leave()
    WatchSignals.stop()
    try takeTerminal()
  }

  /// Sets the terminal's modes and redraws the whole screen, because other programs may have used
  /// it.
  private mutating func takeTerminal() throws(CommandFailure) {
    try terminal.enter()
    painter.forget()
  }

  private var isMounted: Bool {
    get throws(CommandFailure) { try currentMountTable().entries.contains(mount) }
  }
}
