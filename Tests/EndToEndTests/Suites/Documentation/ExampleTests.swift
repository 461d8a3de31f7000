import Foundation
import Testing

/// Runs the examples of docs/examples.
///
/// Each example compares its answer with that of the local files, and checks that it fetched
/// little.
extension RealMounts {
  @Suite struct Examples {
    private func runExample(_ name: String) throws {
      let sandbox = try Sandbox()
      let before = Set(MountTable.entries().map(\.mountpoint))
      let result = try run(
        ["\(Repository.directory)/docs/examples/\(name)"],
        environment: [
          "HTTPFS_BIN_DIR": (try Products.httpfs as NSString).deletingLastPathComponent,
          "TMPDIR": sandbox.directory, "PATH": Host.administratorPath, "LC_ALL": "C.UTF-8",
        ], within: .seconds(120))
      #expect(result.succeeded, "\(name): \(result.ending)\n\(result.output)\(result.error)")
      #expect(result.output.contains(/\nfetched [0-9.]+ of [0-9.]+ MiB/), "\(result.output)")
      #expect(Set(MountTable.entries().map(\.mountpoint)) == before)
      #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.directory).isEmpty)
    }

    @Test(arguments: ["iso-image", "sqlite", "media", "model-weights"])
    func `an example gets its answer and fetches little`(name: String) throws {
      try runExample(name)
    }

    /// DuckDB is not in Debian: scripts/install-deps installs it with pip if PyPI is reachable.
    private static var hasDuckDB: Bool {
      let found = try? run(
        ["python3", "-c", "import duckdb"],
        environment: ["PYTHONPATH": "\(Repository.directory)/.build/python"])
      return found?.succeeded == true
    }

    @Test(.enabled(if: hasDuckDB, "there is no DuckDB"))
    func `a query on Parquet files fetches the columns and row groups that it needs`() throws {
      try runExample("parquet")
    }

    @Test func `every example is run by a test`() throws {
      let names = try FileManager.default.contentsOfDirectory(
        atPath: "\(Repository.directory)/docs/examples"
      ).filter { !$0.contains(".") }
      #expect(Set(names) == ["iso-image", "media", "model-weights", "parquet", "sqlite"])
    }
  }
}
