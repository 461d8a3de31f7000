import ArgumentParser
import Glibc
import LinuxSystem

/// `httpfs status`: what a mount is doing, once or live.
struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show what a mount is doing.")

  @Argument(help: "The mount point (default: the only mount).", completion: .directory)
  var mountpoint: String?

  @Flag(help: "Print the content of '.status.json'.")
  var json = false

  @Flag(
    help: """
      Show a live view with keys to control the mount ('?' lists them), until q or unmount. \
      Without a terminal, print the text every second.
      """)
  var watch = false

  func validate() throws {
    if json && watch { throw ValidationError("--json and --watch exclude each other.") }
  }

  func run() throws {
    try reportingFailure {
      let mountpoint = try mountPointOrOnlyOne(mountpoint)
      if watch, TerminalSession.isPossible {
        try showLive(try httpfsMountUntouched(at: mountpoint), named: mountpoint)
      } else if watch {
        try keepPrinting(try httpfsMount(at: mountpoint))
      } else {
        let mount = try httpfsMount(at: mountpoint)
        try show(json ? ".status.json" : ".status", of: mount.mountpoint)
      }
    }
  }

  private func showLive(_ mount: MountTable.Entry, named mountpoint: String) throws {
    var view = try LiveView(of: mount, shownPath: mountpoint)
    switch try view.run() {
    case .quit: break
    case .unmounted: printToStandardError("httpfs: '\(mountpoint)' is no longer mounted")
    case .failed(let reason): throw CommandFailure(reason)
    case .signal(let number): throw ExitCode(128 + number)
    }
  }

  /// Prints a file of the mount while reading it, because it may be as long as the list.
  private func show(_ name: String, of mountpoint: String) throws(CommandFailure) {
    func failure(_ error: ErrorNumber) -> CommandFailure {
      let advice =
        error.rawValue == ENOTCONN
        ? "; the httpfs process has died: run 'httpfs unmount \(mountpoint)'" : ""
      return CommandFailure("cannot read '\(mountpoint)/\(name)': \(error)\(advice)")
    }
    let descriptor = open("\(mountpoint)/\(name)", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(.last) }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count == 0 { return }
      if count < 0 {
        if errno == EINTR { continue }
        throw failure(.last)
      }
      try printToStandardOutput(Array(buffer[..<count]))
    }
  }

  private func keepPrinting(_ mount: MountTable.Entry) throws(CommandFailure) {
    while true {
      do {
        try show(".status", of: mount.mountpoint)
      } catch {
        if try !currentMountTable().entries.contains(mount) { return }
        throw error
      }
      try printToStandardOutput([UInt8(ascii: "\n")])
      sleep(1)
    }
  }
}
