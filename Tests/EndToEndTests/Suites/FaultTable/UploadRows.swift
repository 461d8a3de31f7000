import Foundation
import Glibc
import SeededRandom
import Testing

/// Row 80: an upload succeeds only with a 2xx to all of its bytes.
extension RealMounts {
  @Suite struct UploadRows {
    private struct Upload {
      let work: TransferWorkspace
      let origin: OriginServer
      let byteCount: Int64
      let hash: String
      var random: SeededGenerator

      init(seed: UInt64, byteCount range: ClosedRange<Int64> = (4 << 20)...(12 << 20)) throws {
        random = SeededGenerator(seed: seed &* 1000 &+ 80)
        work = try TransferWorkspace()
        origin = try OriginServer()
        byteCount = Int64.random(in: range, using: &random)
        hash = try work.writeContent("up.bin", seed: seed, byteCount: byteCount)
      }

      func put(_ query: String, options: [String] = []) throws -> CommandResult {
        try work.run(
          ["put", "--quiet", "--timeout", "2"] + options + [
            "up.bin", origin.url("up.bin", length: 1, seed: 1, query: query),
          ])
      }

      /// Whether the server has answered the whole file with 2xx.
      func isThere() throws -> Bool {
        try origin.requests().contains {
          (200..<300).contains($0.status) && $0.requestBodyHash == hash
        }
      }

      func expectFailure(
        _ result: CommandResult, sourceLocation: SourceLocation = #_sourceLocation
      ) {
        #expect(result.ending.isTransferFailure, sourceLocation: sourceLocation)
        #expect(!result.error.isEmpty, sourceLocation: sourceLocation)
      }
    }

    @Test(
      "80 put cut off for a while: sent again from its start, and a success only with 2xx",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func cutOff(seed: UInt64) throws {
      var upload = try Upload(seed: seed)
      let place = Int64.random(in: 0..<upload.byteCount, using: &upload.random)
      // The one-second time limit allows only one stall here: libcurl needs time to notice it.
      let (fault, most) =
        [("fault=upload-reset", 3), ("fault=stall-head", 1), ("status=503", 3)]
        .randomElement(using: &upload.random) ?? ("", 0)
      let count = Int.random(in: 1...most, using: &upload.random)
      let result = try upload.put("\(fault)&fault-at=\(place)&fault-count=\(count)")
      #expect(result.succeeded, "\(result.error)")
      #expect(try upload.isThere())
      #expect(try upload.origin.requests().count { $0.fault != nil } == count)
    }

    @Test(
      "80 put refused, closed or reset anywhere: no success without 2xx",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func cutAnywhere(seed: UInt64) throws {
      let upload = try Upload(seed: seed)
      let fault = try OriginFault(
        match: #"{"method": "PUT", "probability": 0.7}"#,
        actions: #"""
          [{"read": "random(0, 4m)"}, {"choose": [["reset"], ["close"],
            [{"text": "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"}, "close"]]}]
          """#)
      try upload.origin.post(["seed": Int(seed % 1_000_000)])
      try upload.origin.post(fault.message())
      let result = try upload.put("", options: ["--retries", "3"])
      #expect(try result.succeeded == upload.isThere())
      if !result.succeeded { upload.expectFailure(result) }
    }

    @Test(
      "80 put never confirmed: no success without 2xx",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func neverConfirmed(seed: UInt64) throws {
      var upload = try Upload(seed: seed)
      let place = Int64.random(in: 0..<upload.byteCount, using: &upload.random)
      // For these faults, the Origin's log has the status that it would have sent.
      let cutAnswers = ["fault=header-bomb", "fault=stall-head"]
      let fault =
        ([
          "fault=upload-reset&fault-at=\(place)", "fault=upload-early-response&fault-at=\(place)",
          "status=304", "status=300", "status=404", "status=500", "fault=redirect-loop",
        ] + cutAnswers).randomElement(using: &upload.random) ?? ""
      let result = try upload.put(fault, options: ["--retries", "0"])
      upload.expectFailure(result)
      #expect(try cutAnswers.contains(fault) || !upload.isThere(), "\(fault)")
      #expect(try upload.origin.requests().contains { $0.fault != nil }, "\(fault)")
    }

    @Test(
      "80 source changes during put: the upload is aborted",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func sourceChanges(seed: UInt64) throws {
      // More than sockets hold: the bytes sent before the change must not be the whole file, even
      // if a busy machine extends the pause.
      var upload = try Upload(seed: seed, byteCount: (48 << 20)...(56 << 20))
      let url = upload.origin.url("up.bin", length: 1, seed: 1, query: "upload-rate=8m")
      let process = try upload.work.start("put", "--quiet", "--retries", "1", "up.bin", url)
      pause(for: .milliseconds(Int64.random(in: 300...700, using: &upload.random)))
      #expect(process.isRunning)
      let path = upload.work.path("up.bin")
      let kept = Int64.random(in: 0...1_000_000, using: &upload.random)
      switch Int.random(in: 0..<3, using: &upload.random) {
      case 0: #expect(truncate(path, Int(kept)) == 0)
      case 1: #expect(truncate(path, Int(upload.byteCount + kept + 1)) == 0)
      default:
        // Other bytes and another modification time, with the same length.
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.write(contentsOf: Data(repeating: 0, count: 4096))
        try file.close()
      }
      #expect(process.wait(within: .seconds(30)) == .exited(9))
      #expect(process.standardError.contains("changed"), "\(process.standardError)")
      // The first bytes were those of the old file; the server has accepted no file as complete.
      let confirmed = try upload.origin.requests().filter { (200..<300).contains($0.status) }
      #expect(confirmed.isEmpty)
    }
  }
}
