import Foundation
import Glibc
import Testing

/// The display of `httpfs get` in the usual sizes of a window: 1, 8 and 40 files, of which one fails
/// and one is stalled.
extension RealMounts {
  @Suite struct GetScreenSizes {
    struct Scene: Sendable, CustomTestStringConvertible {
      let columns: Int
      let rows: Int
      let fileCount: Int

      var testDescription: String { "\(fileCount) files at \(columns) × \(rows)" }
    }

    private static let scenes = [(80, 24), (120, 40)].flatMap { columns, rows in
      [1, 8, 40].map { Scene(columns: columns, rows: rows, fileCount: $0) }
    }

    /// The directory in which the screens are kept, for docs/SCREENS.md.
    private static let kept = ProcessInfo.processInfo.environment["HTTPFS_SCREENS"]

    private func name(_ index: Int, of scene: Scene) -> String {
      scene.fileCount == 1
        ? "debian-12.8.0-amd64-netinst.iso"
        : String(format: "train/part-%05d-of-%05d.parquet", index, scene.fileCount)
    }

    private func url(_ index: Int, of scene: Scene, at origin: OriginServer) -> String {
      let extra =
        switch index {
        case 2: "status=404"
        case 3: "rate=400k&fault=stall&fault-at=300000&fault-count=1000"
        default: "rate=500k"
        }
      let length = index == 1 ? 200_000 : 3_000_000
      return origin.url("\(index).parquet", length: Int64(length), seed: 1, query: extra)
    }

    @Test(
      "every file that runs can be told from the others, and the rest is counted",
      arguments: scenes)
    func screen(scene: Scene) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let list = (0..<scene.fileCount).map {
        "\(url($0, of: scene, at: origin))\n  out=\(name($0, of: scene))\n"
      }
      try work.sandbox.write(list.joined(), to: "list")
      let terminal = try work.terminal(
        "get", "-x", "1", "-j", "8", "-i", work.sandbox.path("list"),
        columns: scene.columns, rows: scene.rows)
      let isRunning = terminal.waitForScreen(within: .seconds(20)) { screen in
        let lines = screen.lines.filter { !$0.isEmpty }
        guard scene.fileCount > 1 else { return lines.contains { $0.contains("MiB/s") } }
        return lines.contains { $0.contains("failed: HTTP 404") }
          && lines.contains { $0.hasPrefix("total ") && $0.contains("MiB/s") }
      }
      let lines = terminal.screen.lines.filter { !$0.isEmpty }
      let text = lines.joined(separator: "\n")
      #expect(isRunning, "\(text)")
      try keep(text, of: scene)
      #expect(lines.count < scene.rows)
      #expect(lines.allSatisfy { $0.count <= scene.columns })
      let bars = lines.filter { $0.contains("conn") && !$0.hasPrefix("total ") }
      #expect(bars.allSatisfy { $0.contains("%") }, "\(text)")
      if scene.fileCount == 1 {
        #expect(bars.count == 1 && !text.contains("total "), "\(text)")
      } else {
        #expect((2...8).contains(bars.count), "\(text)")
        // The number of a file is what differs.
        let shown = bars.map { $0.components(separatedBy: "  ")[0] }
        #expect(Set(shown).count == bars.count, "\(text)")
        let total = try #require(lines.first { $0.hasPrefix("total ") })
        #expect(total.contains("/\(scene.fileCount) ") && total.contains("%"), "\(total)")
        #expect(text.contains("2-of-") && text.contains("HTTP 404"), "\(text)")
      }
      if scene.fileCount == 40 {
        #expect(lines.contains { $0.hasPrefix("and ") && $0.contains("queued") }, "\(text)")
        #expect(lines.filter { $0.contains("queued") }.count == 1, "\(text)")
      }
      try terminal.typeControlC()
      #expect(terminal.wait(within: .seconds(20)) == .exited(130))
    }

    private func keep(_ text: String, of scene: Scene) throws {
      guard let directory = Self.kept else { return }
      let name = String(format: "%03d-%02d.txt", scene.columns, scene.fileCount)
      try (text + "\n").write(toFile: "\(directory)/\(name)", atomically: true, encoding: .utf8)
    }
  }
}
