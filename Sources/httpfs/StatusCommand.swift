import ArgumentParser
import Glibc
import MountStatus

/// `httpfs status`: what a mount is doing, once or live.
struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show what a mount is doing.")

  @Argument(help: "Where the list is mounted.", completion: .directory)
  var mountpoint: String

  @Flag(help: "Print the JSON of '.status.json'.")
  var json = false

  @Flag(
    help: """
      Show it live, with keys to control the mount ('?' names them), until q or unmount; where that \
      is no terminal, print the text every second.
      """)
  var watch = false

  func validate() throws {
    if json && watch { throw ValidationError("--json and --watch exclude each other.") }
  }

  func run() throws {
    try reportingFailure {
      if watch, TerminalSession.isPossible {
        try showLive(try httpfsMountUntouched(at: mountpoint))
      } else if watch {
        try keepPrinting(try httpfsMount(at: mountpoint))
      } else {
        let mount = try httpfsMount(at: mountpoint)
        try printToStandardOutput(
          try read(json ? ".status.json" : ".status", of: mount.mountpoint))
      }
    }
  }

  private func showLive(_ mount: MountTable.Entry) throws {
    var view = try LiveView(of: mount, shownPath: mountpoint)
    switch try view.run() {
    case .quit: break
    case .unmounted: printToStandardError("httpfs: '\(mountpoint)' is no longer mounted")
    case .failed(let reason): throw CommandFailure(reason)
    case .signal(let number): throw ExitCode(128 + number)
    }
  }

  private func read(_ name: String, of mountpoint: String) throws(CommandFailure) -> [UInt8] {
    do {
      return try contents(ofFile: "\(mountpoint)/\(name)")
    } catch {
      let advice =
        error.code == ENOTCONN
        ? "; the httpfs process has died: run 'httpfs unmount \(self.mountpoint)'" : ""
      throw CommandFailure("cannot read '\(mountpoint)/\(name)': \(error)\(advice)")
    }
  }

  private func keepPrinting(_ mount: MountTable.Entry) throws(CommandFailure) {
    while true {
      let content: [UInt8]
      do {
        content = try read(".status.json", of: mount.mountpoint)
      } catch {
        if try !currentMountTable().entries.contains(mount) { return }
        throw error
      }
      let report: StatusReport
      do {
        report = try StatusReport(json: content)
      } catch {
        throw CommandFailure("cannot read '\(mount.mountpoint)/.status.json': \(error)")
      }
      try printToStandardOutput(Array((report.text() + "\n").utf8))
      sleep(1)
    }
  }
}
