import Foundation
import RangeCache
import Testing

/// A small text in the cache directory, beside the entries.
@Suite struct NoteTests {
  @Test("A note is there for the next process, is replaced and removed, and is no entry")
  func note() throws {
    let root = try TemporaryDirectory()
    let path = root.path + "/cache"
    do {
      let directory = try CacheDirectory(path: path)
      #expect(directory.note("hosts") == nil)
      try directory.storeNote("a longer text\n", "hosts")
      try directory.storeNote("text\n", "hosts")
    }
    let directory = try CacheDirectory(path: path)
    #expect(directory.note("hosts") == "text\n")
    #expect(try CacheInventory(path: path).entries().isEmpty)
    let mode = try FileManager.default.attributesOfItem(atPath: path + "/v1/hosts")[
      .posixPermissions]
    #expect(mode as? Int == 0o600)
    directory.removeNote("hosts")
    #expect(directory.note("hosts") == nil)
  }

  @Test("What is no text, and a directory in its place, are no note")
  func garbage() throws {
    let root = try TemporaryDirectory()
    let path = root.path + "/cache"
    let directory = try CacheDirectory(path: path)
    try writeFile(path + "/v1/hosts", [0xFF, 0xFE, 0x00])
    #expect(directory.note("hosts") == nil)
    try FileManager.default.removeItem(atPath: path + "/v1/hosts")
    try FileManager.default.createDirectory(
      atPath: path + "/v1/hosts", withIntermediateDirectories: false)
    #expect(directory.note("hosts") == nil)
    #expect(throws: CacheError.self) { try directory.storeNote("text", "hosts") }
  }
}
