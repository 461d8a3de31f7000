import Glibc
import OriginContent
import Testing

/// A client receives exactly the bytes of a script.
@Suite(.timeLimit(.minutes(2)))
struct ScriptOverSocketTests {
  private static let target = "/data/a?length=10000&seed=7"

  /// The response of an origin with these actions.
  private func response(
    _ actions: String, fields: String = "", silence: Int32 = 10_000
  ) throws -> (text: String, ending: RawClient.Ending) {
    let origin = try OriginProcess(script: #"{"match": "*", "name": "r", "actions": \#(actions)}"#)
    let client = try RawClient(port: origin.port)
    try client.get(Self.target, fields: fields)
    let (bytes, ending) = client.receive(silence: silence)
    return (String(decoding: bytes, as: UTF8.self), ending)
  }

  @Test("Raw bytes, content and an orderly end")
  func rawBytes() throws {
    let origin = try OriginProcess(
      script: """
        {"match": "*", "actions": [{"text": "HTTP/1.1 206 P\\r\\nX: \\u0000\\r\\n\\r\\n"}, "content",
          {"hex": "ff"}, "close"]}
        """)
    let client = try RawClient(port: origin.port)
    try client.get(Self.target, fields: "Range: bytes=5000-5999\r\n")
    let (bytes, ending) = client.receive()
    let expected =
      Array("HTTP/1.1 206 P\r\nX: \0\r\n\r\n".utf8)
      + OriginContent.bytes(seed: 7, range: 5000..<6000) + [0xFF]
    #expect(bytes == expected)
    #expect(ending == .closed)
  }

  @Test("A reset in the middle of a head, after what was sent before it")
  func resetInHead() throws {
    let (text, ending) = try response(#"[{"head": {"cut": 12}}, "reset"]"#)
    #expect(text == "HTTP/1.1 200")
    #expect(ending == .reset)
  }

  @Test("A head at so many bytes per second, and what comes after it at full speed")
  func slowHead() throws {
    let origin = try OriginProcess(
      script: """
        {"match": "*", "actions": [{"rate": 100}, {"text": "0123456789"}, {"repeat": 5, "actions":
          [{"text": "0123456789"}]}, {"rate": null}, {"content": [0, 9999]}, "close"]}
        """)
    let client = try RawClient(port: origin.port)
    let clock = ContinuousClock()
    try client.get(Self.target)
    var all: [UInt8] = []
    let slow = clock.measure { all = client.receive(limit: 60).bytes }
    let fast = clock.measure { all += client.receive().bytes }
    #expect(all.count == 10_060)
    // 60 bytes at 100 per second, of which a quarter of a second's worth is sent at once.
    #expect(slow > .milliseconds(300))
    #expect(fast < slow)
  }

  @Test("A stall lasts, a delay passes")
  func stallAndDelay() throws {
    let (text, ending) = try response(
      #"[{"text": "a"}, {"delay": 300}, {"text": "b"}, "stall"]"#, silence: 1000)
    #expect(text == "ab")
    #expect(ending == .silence)
  }

  @Test("A kept connection is closed when it is used again, once")
  func closesReused() throws {
    let origin = try OriginProcess(
      script: #"{"match": {"reused": true, "times": 1}, "actions": ["reset"]}"#)
    let target = "/data/a?length=1"
    let head = "HTTP/1.1 200"
    let first = try RawClient(port: origin.port)
    try first.get(target)
    // The first response, of some hundred bytes, arrives completely within a moment.
    #expect(String(decoding: first.receive(silence: 500).bytes, as: UTF8.self).hasPrefix(head))
    try first.get(target)
    #expect(first.receive().ending == .reset)
    let second = try RawClient(port: origin.port)
    for _ in 0..<3 {
      try second.get(target)
      #expect(String(decoding: second.receive(silence: 500).bytes, as: UTF8.self).hasPrefix(head))
    }
  }

  @Test("An upload is refused before it is read, or after a part of it")
  func refusesUploads() throws {
    let origin = try OriginProcess(
      script: """
        [{"match": {"method": "PUT"}, "actions": [{"read": 1000}, {"text":
          "HTTP/1.1 507 Full\\r\\nContent-Length: 0\\r\\n\\r\\n"}, "close"]},
         {"match": {"method": "PUT", "fields": {"Expect": "100-*"}}, "actions": [{"text":
          "HTTP/1.1 413 No\\r\\nContent-Length: 0\\r\\n\\r\\n"}, "close"]}]
        """)
    let part = try RawClient(port: origin.port)
    let body = String(repeating: "x", count: 5000)
    let answer = try part.exchange(
      "PUT \(Self.target) HTTP/1.1\r\nHost: o\r\nContent-Length: 5000\r\n\r\n\(body)")
    #expect(answer.hasPrefix("HTTP/1.1 507 Full\r\n"))
    let waiting = try RawClient(port: origin.port)
    let refusal = try waiting.exchange(
      "PUT \(Self.target) HTTP/1.1\r\nHost: o\r\nContent-Length: 5000\r\n"
        + "Expect: 100-continue\r\n\r\n")
    #expect(refusal.hasPrefix("HTTP/1.1 413 No\r\n"))
    let log = try RawClient(port: origin.port).exchange(
      "GET /log HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n")
    #expect(log.contains(#""request_body_bytes":1000"#))
  }

  @Test("The request log names the rule and the status that was sent by hand")
  func log() throws {
    let origin = try OriginProcess()
    let answer = try origin.control(
      """
      {"match": "/any/where", "name": "by hand", "actions": [{"text":
        "HTTP/1.1 418 Teapot\\r\\nContent-Length: 3\\r\\n\\r\\n"}, {"content": [0, 2]}]}
      """)
    #expect(answer.hasPrefix("HTTP/1.1 200"))
    let client = try RawClient(port: origin.port)
    try client.get("/any/where")
    #expect(
      client.receive(silence: 500).bytes.count == "HTTP/1.1 418 Teapot\r\n".utf8.count + 21 + 3)
    // The connection continues.
    let log = try client.exchange("GET /log HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n")
    #expect(log.contains(#""rule":"by hand""#))
    #expect(log.contains(#""status":418"#))
    #expect(log.contains(#""body_bytes":3"#))
  }

  @Test("A message with a mistake is refused, and changes nothing")
  func refusesMistakes() throws {
    let origin = try OriginProcess(script: #"{"match": "*", "name": "r", "actions": ["reset"]}"#)
    let answer = try origin.control(
      #"[{"clear": true}, {"match": {"times": 0}, "actions": []}]"#)
    #expect(answer.hasPrefix("HTTP/1.1 400"))
    #expect(answer.contains("rule 2: match.times: expected a whole number from 1"))
    let client = try RawClient(port: origin.port)
    try client.get(Self.target)
    #expect(client.receive().ending == .reset)
  }

  @Test("An origin does not start with a script that has a mistake")
  func refusesBadScript() {
    #expect(throws: OriginProcess.Failure.self) {
      try OriginProcess(script: #"{"match": "*", "actions": ["rest"]}"#)
    }
  }

  @Test("A thousand connections are served at once, and their threads end with them")
  func manyConnections() throws {
    var limit = rlimit()
    #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    // A thousand sockets, and the test program's open descriptors.
    limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, 4096))
    #expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    let origin = try OriginProcess()
    do {
      var clients: [RawClient] = []
      for _ in 0..<1000 { clients.append(try RawClient(port: origin.port)) }
      let began = ContinuousClock.now
      for client in clients { try client.get("/data/many?length=100&latency=500") }
      for client in clients {
        let bytes = client.receive(limit: 12).bytes
        #expect(String(decoding: bytes, as: UTF8.self) == "HTTP/1.1 200")
      }
      // Sequentially, they would take minutes.
      #expect(ContinuousClock.now - began < .seconds(20))
      #expect(origin.threadCount > 1000)
    }
    for _ in 0..<500 where origin.threadCount > 10 { usleep(10_000) }
    #expect(origin.threadCount <= 10)
  }
}
