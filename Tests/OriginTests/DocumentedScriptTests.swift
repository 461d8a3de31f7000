import Foundation
import OriginContent
import Testing

struct DocumentedScriptTests {
  /// The scripts in docs/ORIGIN.md: fenced blocks of JSON, and rules within a line.
  private static var scripts: [String] {
    get throws {
      let package = (0..<3).reduce(URL(fileURLWithPath: #filePath)) { url, _ in
        url.deletingLastPathComponent()
      }
      let text = try String(
        contentsOf: package.appending(path: "docs/ORIGIN.md"), encoding: .utf8)
      let blocks = text.components(separatedBy: "```json\n").dropFirst().compactMap {
        $0.components(separatedBy: "\n```").first
      }
      let rules = text.components(separatedBy: "`").filter { $0.hasPrefix("{\"match\"") }
      return blocks + rules
    }
  }

  @Test("Every script of the documentation is understood, and can be carried out")
  func documentedScripts() throws {
    let scripts = try Self.scripts
    #expect(scripts.count > 9)
    for script in scripts {
      var resource: ScriptedResource
      do {
        resource = try ScriptedResource(script)
      } catch {
        Issue.record("\(script): \(error)")
        continue
      }
      for method in ["GET", "HEAD", "PUT"] {
        for range in [nil, "100-199"] {
          let plan = try resource.plan(method, range: range)
          #expect(plan.head?.status != 500, "\(script) does not run with \(method)")
        }
      }
    }
  }
}
