import HTTPTransferCore
import Testing

@Suite struct HostMemoryTests {
  @Test("What was noted is known for 30 days")
  func lifetime() {
    var memory = HostMemory()
    memory.note(16, for: "https://example.org", today: 20_000)
    #expect(memory.connections(for: "https://example.org", today: 20_030) == 16)
    #expect(memory.connections(for: "https://example.org", today: 20_031) == nil)
    #expect(memory.connections(for: "http://example.org", today: 20_000) == nil)
    memory.note(0, for: "https://example.org", today: 20_031)
    #expect(memory.connections(for: "https://example.org", today: 20_031) == 1)
  }

  @Test("The text says the same")
  func text() {
    var memory = HostMemory()
    memory.note(16, for: "https://example.org", today: 20_000)
    memory.note(4, for: "http://[::1]:8080", today: 20_001)
    #expect(memory.text == "http://[::1]:8080 4 20001\nhttps://example.org 16 20000\n")
    #expect(HostMemory(text: memory.text) == memory)
  }

  @Test(
    "Lines that are something else count for nothing",
    arguments: [
      "", "\n", "a", "a 1", "a 1 2 3", "a x 1", "a 0 1", "a 65 1", "a -1 1", "a 1 -1",
      "a 99999999999999999999 1", "\u{0}\u{FFFD} 1",
    ])
  func garbage(line: String) {
    #expect(HostMemory(text: line + "\nb 2 3\n").text == "b 2 3\n")
  }

  @Test("No more than 1,000 are kept; the oldest goes")
  func limit() {
    var memory = HostMemory()
    for index in 0..<1500 { memory.note(2, for: "http://h\(index)", today: 10_000 + index) }
    #expect(memory.text.split(separator: "\n").count == 1000)
    #expect(memory.connections(for: "http://h499", today: 10_499) == nil)
    #expect(memory.connections(for: "http://h500", today: 10_500) == 2)
  }
}
