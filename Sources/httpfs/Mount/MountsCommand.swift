import ArgumentParser
import LinuxSystem
import TextFormat

/// `httpfs mounts`: the mounts of this machine.
struct MountsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mounts", abstract: "List the mounts, with their sources and state.",
    discussion: """
      Prints a line for each mount: its mount point, its source, and 'ok', 'dead' if its process \
      has ended, or 'hangs' if it does not answer.
      """)

  @Flag(help: "Print JSON.")
  var json = false

  func run() throws {
    try reportingFailure {
      let rows = try httpfsMounts().map { mount in
        Row(
          mountpoint: mount.mountpoint, source: mount.source, state: MountHealth(of: mount))
      }
      try printToStandardOutput(json ? jsonText(rows) : Array(text(rows).utf8))
    }
  }

  private struct Row {
    let mountpoint: String
    let source: String
    let state: MountHealth
  }

  private func text(_ rows: [Row]) -> String {
    let cells = rows.map { (escapingControls($0.mountpoint), escapingControls($0.source)) }
    let width = cells.map { displayWidth($0.0) }.max() ?? 0
    let sourceWidth = cells.map { displayWidth($0.1) }.max() ?? 0
    return zip(rows, cells).map { row, cells in
      padded(cells.0, to: width) + "  " + padded(cells.1, to: sourceWidth)
        + "  \(row.state.rawValue)\n"
    }.joined()
  }

  private enum Key: String, CodingKey { case mounts, mountpoint, source, state }

  private func jsonText(_ rows: [Row]) -> [UInt8] {
    var writer = JSONWriter(capacity: 256)
    writer.object { writer in
      writer.member(Key.mounts) { writer in
        writer.array(rows) { row, writer in
          writer.object { writer in
            writer.member(Key.mountpoint, row.mountpoint)
            writer.member(Key.source, row.source)
            writer.member(Key.state, row.state.rawValue)
          }
        }
      }
    }
    return writer.bytes + [UInt8(ascii: "\n")]
  }
}
